#include "client/src/parallel_copy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace warpline::client {
namespace {

std::vector<std::uint32_t> Numbers(std::size_t count) {
  std::vector<std::uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 1u);
  return numbers;
}

TEST(ParallelCopyTest, CopiesAnySize) {
  for (const std::size_t count : {0u, 1u, 1000u, 1u << 20, (5u << 20) + 7}) {
    const std::vector<std::uint32_t> from = Numbers(count);
    std::vector<std::uint32_t> to(count);
    CopyBytes(to.data(), from.data(), count * 4);
    EXPECT_EQ(to, from);
  }
}

TEST(ParallelCopyTest, LeavesThePaddingOut) {
  // Rows shorter than a chunk of 4 MiB, and longer.
  for (const std::size_t row : {3u, 1000u, (1u << 20) + 5}) {
    const std::size_t rows = (std::size_t{5} << 20) / row + 2, stride = row + 3;
    const std::vector<std::uint32_t> from = Numbers(rows * stride - 3);
    std::vector<std::uint32_t> to(rows * row);
    CopyRows(to.data(), from.data(), rows * row * 4, row * 4, stride * 4);
    for (std::size_t i = 0; i < to.size(); ++i) ASSERT_EQ(to[i], from[i / row * stride + i % row]);
  }
}

}  // namespace
}  // namespace warpline::client
