#include "kernels/nearest_name.h"

#include <gtest/gtest.h>

namespace warpline {
namespace {

TEST(NearestNameTest, DistancesAreThoseOfTheLiterature) {
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("saturday", "sunday"), 3u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("abc", ""), 3u);
  EXPECT_EQ(EditDistance("abc", "abc"), 0u);
}

TEST(NearestNameTest, NamesTheNearestOrNone) {
  const std::vector<std::string> names = {"lanes", "listen", "max-jobs", "max-job-bytes"};
  EXPECT_EQ(NearestName("max-job", names), "max-jobs");
  EXPECT_EQ(NearestName("lane", names), "lanes");
  EXPECT_EQ(NearestName("colour", names), "");
  EXPECT_EQ(NearestName("", names), "");
}

}  // namespace
}  // namespace warpline
