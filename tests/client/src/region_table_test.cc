#include "client/src/region_table.h"

#include <gtest/gtest.h>

#include <array>

namespace warpline::client {
namespace {

// The table only hands regions on, so any object will do.
std::shared_ptr<SharedRegion> Stand(std::shared_ptr<int> object) {
  return {object, reinterpret_cast<SharedRegion*>(object.get())};
}

TEST(RegionTableTest, FindsTheRegionInWhichAllOfItLies) {
  RegionTable table;
  std::array<std::byte, 1000> memory;
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.Find(memory.data(), 1), nullptr);
  const auto first = Stand(std::make_shared<int>(1)), second = Stand(std::make_shared<int>(2));
  table.Add(memory.data() + 100, 200, first);
  table.Add(memory.data() + 300, 100, second);
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(table.Find(memory.data() + 99, 1), nullptr);
  EXPECT_EQ(table.Find(memory.data() + 100, 200), first);
  EXPECT_EQ(table.Find(memory.data() + 299, 1), first);
  EXPECT_EQ(table.Find(memory.data() + 299, 2), nullptr) << "it lies in two";
  EXPECT_EQ(table.Find(memory.data() + 300, 100), second);
  EXPECT_EQ(table.Find(memory.data() + 300, 101), nullptr);
  EXPECT_EQ(table.Find(memory.data() + 300, ~std::size_t{0}), nullptr);
  EXPECT_EQ(table.All().size(), 2u);
  table.Remove(memory.data() + 100);
  EXPECT_EQ(table.Find(memory.data() + 100, 1), nullptr);
  EXPECT_EQ(table.All().size(), 1u);
}

TEST(RegionTableTest, KeepsNoRegion) {
  RegionTable table;
  std::array<std::byte, 16> memory;
  auto region = Stand(std::make_shared<int>(1));
  table.Add(memory.data(), memory.size(), region);
  region = nullptr;
  EXPECT_EQ(table.Find(memory.data(), 1), nullptr);
  EXPECT_TRUE(table.All().empty());
}

}  // namespace
}  // namespace warpline::client
