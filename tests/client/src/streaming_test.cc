#include "client/src/streaming.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warpline::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LargestOfTest, TakesTheLargestUntilTheOthersAreFewerThanTheLimit) {
  EXPECT_THAT(LargestOf({5, 40, 7, 30}, 100), IsEmpty());
  EXPECT_THAT(LargestOf({5, 40, 7, 30}, 82), ElementsAre(1));
  EXPECT_THAT(LargestOf({5, 40, 7, 30}, 43), ElementsAre(1));
  EXPECT_THAT(LargestOf({5, 40, 7, 30}, 42), ElementsAre(1, 3)) << "what is left must be below the limit";
  EXPECT_THAT(LargestOf({9, 9, 9}, 10), ElementsAre(0, 1)) << "of equal ones, the first";
}

TEST(LargestOfTest, NothingIsLessThanAnyLimit) {
  EXPECT_THAT(LargestOf({}, 1), IsEmpty());
  EXPECT_THAT(LargestOf({0, 0}, 1), IsEmpty());
}

}  // namespace
}  // namespace warpline::client
