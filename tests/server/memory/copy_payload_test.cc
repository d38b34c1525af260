#include "server/memory/copy_payload.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace warpline {
namespace {

void CheckCopy(std::size_t total, std::size_t largest_piece) {
  Metrics metrics;
  CopySite site(metrics, "test");
  std::mt19937 random(7);
  std::vector<std::byte> from(total);
  for (std::byte& byte : from) byte = static_cast<std::byte>(random());
  std::vector<std::span<const std::byte>> pieces;
  for (std::size_t at = 0; at < total;) {
    const std::size_t size = std::min(total - at, random() % (largest_piece + 1));
    pieces.push_back(std::span(from).subspan(at, size));
    at += size;
  }
  std::vector<std::byte> to(total);
  CopyPayload(site, to.data(), pieces);
  EXPECT_EQ(to, from);
  EXPECT_EQ(metrics.HostCopyBytes("test").Value(), static_cast<double>(total));
}

TEST(CopyPayloadTest, JoinsPiecesAndCountsBytes) { CheckCopy(10000, 100); }
TEST(CopyPayloadTest, CopiesNothing) { CheckCopy(0, 1); }

}  // namespace
}  // namespace warpline
