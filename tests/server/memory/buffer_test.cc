#include "server/memory/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "server/memory/mapped_memory.h"

namespace warpline {
namespace {

TEST(BufferTest, TheOwnerLivesUntilTheLastCopyIsGone) {
  auto owner = std::make_shared<std::vector<std::byte>>(16);
  const std::weak_ptr<std::vector<std::byte>> alive = owner;
  const std::span<std::byte> bytes(*owner);
  Buffer first(bytes, {}, std::move(owner));
  Buffer second = first;
  first = Buffer();
  EXPECT_EQ(second.bytes().size(), 16u);
  EXPECT_FALSE(alive.expired());
  second = Buffer();
  EXPECT_TRUE(alive.expired());
}

TEST(MappedMemoryTest, IsZeroedAndCanBeWritten) {
  auto memory = MapMemory(10000);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->place().kind, Place::Kind::kHost);
  ASSERT_EQ(memory->bytes().size(), 10000u);
  EXPECT_TRUE(std::all_of(memory->bytes().begin(), memory->bytes().end(),
                          [](std::byte b) { return b == std::byte{0}; }));
  std::fill(memory->bytes().begin(), memory->bytes().end(), std::byte{7});
}

TEST(MappedMemoryTest, MoreThanTheAddressSpaceIsRefused) {
  EXPECT_EQ(MapMemory(std::numeric_limits<std::size_t>::max() / 2).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace warpline
