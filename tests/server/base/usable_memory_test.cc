#include "server/base/usable_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace warpline {
namespace {

TEST(BytesOfLimitTest, ReadsANumberOfBytes) {
  EXPECT_EQ(BytesOfLimit("1073741824"), std::size_t{1} << 30);
  EXPECT_EQ(BytesOfLimit("4096\n"), 4096u);
  EXPECT_EQ(BytesOfLimit("9223372036854771712"), 9223372036854771712u);  // how cgroup v1 says no limit
}

TEST(BytesOfLimitTest, NoLimitIsZero) {
  for (const char* text : {"max", "max\n", "", " ", "-1", "1G"}) EXPECT_EQ(BytesOfLimit(text), 0u) << text;
}

TEST(UsableMemoryTest, IsAtMostTheMachines) {
  const auto pages = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES));
  EXPECT_GT(UsableMemoryBytes(), 0u);
  EXPECT_LE(UsableMemoryBytes(), pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
}

}  // namespace
}  // namespace warpline
