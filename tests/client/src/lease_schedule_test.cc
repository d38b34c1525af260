#include "client/src/lease_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace warpline::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LeaseScheduleTest : public testing::Test {
 protected:
  void Add(std::uint64_t key, const std::string& id, absl::Duration ttl, bool owned = true) {
    schedule_.Add(key, {.id = id, .ttl = ttl, .owned = owned}, now_);
  }
  std::vector<std::string> Due(LeaseSchedule::Time time, std::size_t count = 100) {
    std::vector<std::string> ids;
    for (const auto& [key, id] : schedule_.TakeDue(time, count)) ids.push_back(id);
    return ids;
  }

  const LeaseSchedule::Time now_{seconds(1000)};
  LeaseSchedule schedule_;
};

TEST_F(LeaseScheduleTest, RenewsAtHalfOfTheLease) {
  Add(1, "a", absl::Seconds(10));
  Add(2, "b", absl::Seconds(4));
  EXPECT_EQ(schedule_.Next(), now_ + seconds(2));
  EXPECT_THAT(Due(now_ + milliseconds(1999)), IsEmpty());
  EXPECT_THAT(Due(now_ + seconds(2)), ElementsAre("b"));
  // It is on its way.
  EXPECT_THAT(Due(now_ + seconds(2)), IsEmpty());
  EXPECT_EQ(schedule_.Next(), now_ + seconds(5));
  // The server gave it another length.
  schedule_.Renewed(2, absl::Seconds(2), now_ + seconds(2));
  EXPECT_EQ(schedule_.Next(), now_ + seconds(3));
}

TEST_F(LeaseScheduleTest, RenewsTogetherWhatIsDueSoon) {
  for (std::uint64_t key = 1; key <= 5; ++key) {
    const auto later = seconds(key);
    schedule_.Add(key, {.id = std::string(1, static_cast<char>('a' + key)), .ttl = absl::Seconds(12)},
                  now_ + later);
  }
  // Within a quarter of the lease.
  EXPECT_THAT(Due(now_ + seconds(7)), ElementsAre("b", "c", "d", "e"));
  EXPECT_THAT(Due(now_ + seconds(7)), IsEmpty());
  EXPECT_THAT(Due(now_ + seconds(11)), ElementsAre("f"));
}

TEST_F(LeaseScheduleTest, TakesNoMoreThanIsAskedFor) {
  Add(1, "a", absl::Seconds(4));
  Add(2, "b", absl::Seconds(4));
  Add(3, "c", absl::Seconds(4));
  EXPECT_THAT(Due(now_ + seconds(2), 2), ElementsAre("a", "b"));
  EXPECT_THAT(Due(now_ + seconds(2), 2), ElementsAre("c"));
}

TEST_F(LeaseScheduleTest, KeepsTheIntervalsWithinBounds) {
  Add(1, "a", absl::Nanoseconds(1));
  EXPECT_THAT(Due(now_ + milliseconds(50)), ElementsAre("a"));
  schedule_.Renewed(1, absl::InfiniteDuration(), now_);
  EXPECT_EQ(schedule_.Next(), now_ + std::chrono::hours(1));
}

TEST_F(LeaseScheduleTest, TriesAgainWhileTheLeaseMayLast) {
  Add(1, "a", absl::Seconds(8));
  EXPECT_THAT(Due(now_ + seconds(4)), ElementsAre("a"));
  schedule_.Failed(1, absl::StatusCode::kUnavailable, now_ + seconds(4));
  EXPECT_EQ(schedule_.Next(), now_ + seconds(5));
}

TEST_F(LeaseScheduleTest, ForgetsWhatIsNotThere) {
  for (const absl::StatusCode code : {absl::StatusCode::kNotFound, absl::StatusCode::kFailedPrecondition,
                                      absl::StatusCode::kUnimplemented}) {
    Add(1, "a", absl::Seconds(8));
    schedule_.Failed(1, code, now_);
    EXPECT_FALSE(schedule_.Next());
    EXPECT_FALSE(schedule_.Remove(1));
  }
  schedule_.Renewed(1, absl::Seconds(1), now_);
  schedule_.Failed(1, absl::StatusCode::kUnavailable, now_);
  EXPECT_FALSE(schedule_.Next());
}

TEST_F(LeaseScheduleTest, FindsAllHoldersOfATensor) {
  Add(1, "a", absl::Seconds(8));
  Add(2, "a", absl::Seconds(6), false);
  Add(3, "b", absl::Seconds(8));
  EXPECT_EQ(schedule_.LengthOf("a"), absl::Seconds(6));
  EXPECT_EQ(schedule_.LengthOf("c"), std::nullopt);
  schedule_.Restart("a", absl::Seconds(2), now_);
  EXPECT_THAT(Due(now_ + seconds(1)), ElementsAre("a", "a"));
  schedule_.Forget("a");
  schedule_.Renewed(1, absl::Seconds(1), now_);
  EXPECT_EQ(schedule_.Next(), now_ + seconds(4));
  EXPECT_FALSE(schedule_.Remove(2));
}

TEST_F(LeaseScheduleTest, ARenewalOnItsWayDoesNotUndoARestart) {
  Add(1, "a", absl::Seconds(600));
  EXPECT_THAT(Due(now_ + seconds(300)), ElementsAre("a"));
  schedule_.Restart("a", absl::Seconds(2), now_ + seconds(300));
  schedule_.Renewed(1, absl::Seconds(600), now_ + seconds(300));
  schedule_.Failed(1, absl::StatusCode::kUnavailable, now_ + seconds(300));
  EXPECT_EQ(schedule_.Next(), now_ + seconds(301));
}

TEST_F(LeaseScheduleTest, TellsWhatIsToBeDropped) {
  Add(1, "a", absl::Seconds(8));
  Add(2, "b", absl::Seconds(8), false);
  Add(3, "c", absl::Seconds(8));
  Add(4, "d", absl::Seconds(8), false);
  EXPECT_EQ(schedule_.Remove(1)->id, "a");
  EXPECT_FALSE(schedule_.Remove(2)->owned);
  EXPECT_FALSE(schedule_.Remove(7));
  const std::vector<HeldTensor> left = schedule_.End();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].id, "c");
  EXPECT_THAT(schedule_.End(), IsEmpty());
  EXPECT_FALSE(schedule_.Next());
}

}  // namespace
}  // namespace warpline::client
