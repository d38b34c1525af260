#include "kernels/nearest_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace warpline {
namespace {

const std::vector<std::string> kNames = {"transpose", "gemm", "get", "tensors"};

TEST(NearestNameTest, FindsWhatIsFewLettersAway) {
  EXPECT_EQ(NearestName("transpsoe", kNames), "transpose");
  EXPECT_EQ(NearestName("gem", kNames), "gemm");
  EXPECT_EQ(NearestName("gets", kNames), "get");
  EXPECT_EQ(NearestName("tensor", kNames), "tensors");
}

TEST(NearestNameTest, FindsNothingThatIsFar) {
  EXPECT_EQ(NearestName("invert", kNames), "");
  EXPECT_EQ(NearestName("x", kNames), "");
  EXPECT_EQ(NearestName("", kNames), "");
  EXPECT_EQ(NearestName("gemm", {}), "");
}

}  // namespace
}  // namespace warpline
