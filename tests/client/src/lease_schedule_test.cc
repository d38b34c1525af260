#include "client/src/lease_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warpline::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LeaseScheduleTest : public testing::Test {
 protected:
  const LeaseSchedule::Time now_{seconds(1000)};
  LeaseSchedule schedule_;
};

TEST_F(LeaseScheduleTest, RenewsAtHalfOfTheLease) {
  schedule_.Add(1, "a", absl::Seconds(10), true, now_);
  schedule_.Add(2, "b", absl::Seconds(4), true, now_);
  EXPECT_EQ(schedule_.Next(), now_ + seconds(2));
  EXPECT_FALSE(schedule_.TakeDue(now_ + milliseconds(1999)));
  const auto due = schedule_.TakeDue(now_ + seconds(2));
  ASSERT_TRUE(due);
  EXPECT_EQ(*due, std::pair(std::uint64_t{2}, std::string("b")));
  // It is on its way.
  EXPECT_FALSE(schedule_.TakeDue(now_ + seconds(2)));
  EXPECT_EQ(schedule_.Next(), now_ + seconds(5));
  // The server gave it another length.
  schedule_.Renewed(2, absl::Seconds(2), now_ + seconds(2));
  EXPECT_EQ(schedule_.Next(), now_ + seconds(3));
}

TEST_F(LeaseScheduleTest, KeepsTheIntervalsWithinBounds) {
  schedule_.Add(1, "a", absl::Nanoseconds(1), true, now_);
  EXPECT_EQ(schedule_.Next(), now_ + milliseconds(50));
  schedule_.Renewed(1, absl::InfiniteDuration(), now_);
  EXPECT_EQ(schedule_.Next(), now_ + std::chrono::hours(1));
}

TEST_F(LeaseScheduleTest, TriesAgainWhileTheLeaseMayLast) {
  schedule_.Add(1, "a", absl::Seconds(8), true, now_);
  ASSERT_TRUE(schedule_.TakeDue(now_ + seconds(4)));
  schedule_.Failed(1, absl::StatusCode::kUnavailable, now_ + seconds(4));
  EXPECT_EQ(schedule_.Next(), now_ + seconds(5));
}

TEST_F(LeaseScheduleTest, ForgetsWhatIsNotThere) {
  for (const absl::StatusCode code : {absl::StatusCode::kNotFound, absl::StatusCode::kFailedPrecondition,
                                      absl::StatusCode::kUnimplemented}) {
    schedule_.Add(1, "a", absl::Seconds(8), true, now_);
    schedule_.Failed(1, code, now_);
    EXPECT_FALSE(schedule_.Next());
    EXPECT_FALSE(schedule_.Remove(1));
  }
  schedule_.Renewed(1, absl::Seconds(1), now_);
  schedule_.Failed(1, absl::StatusCode::kUnavailable, now_);
  EXPECT_FALSE(schedule_.Next());
}

TEST_F(LeaseScheduleTest, TellsWhatIsToBeDropped) {
  schedule_.Add(1, "a", absl::Seconds(8), true, now_);
  schedule_.Add(2, "b", absl::Seconds(8), false, now_);
  schedule_.Add(3, "c", absl::Seconds(8), true, now_);
  schedule_.Add(4, "d", absl::Seconds(8), false, now_);
  EXPECT_EQ(schedule_.Remove(1), "a");
  EXPECT_EQ(schedule_.Remove(2), std::nullopt);
  EXPECT_EQ(schedule_.Remove(7), std::nullopt);
  EXPECT_THAT(schedule_.End(), ElementsAre("c"));
  EXPECT_THAT(schedule_.End(), IsEmpty());
  EXPECT_FALSE(schedule_.Next());
}

}  // namespace
}  // namespace warpline::client
