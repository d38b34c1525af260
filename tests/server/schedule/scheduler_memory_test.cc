// Jobs, staging memory and the results that keep it.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <latch>
#include <vector>

#include "tests/server/schedule/scheduler_fixture.h"
#include "tests/testing/patience.h"

namespace warpline {
namespace {

class SchedulerMemoryTest : public SchedulerTest {};

INSTANTIATE_TEST_SUITE_P(Launches, SchedulerMemoryTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "AtOnce" : "OnLaneThread"; });

TEST_P(SchedulerMemoryTest, AResultHoldsItsSlotButNoLane) {
  Make(1, 1);
  Submitted first = Submit(1);
  backend_->FinishOne();
  Result held = first.result.get();  // a reader that takes its time
  Submitted second = Submit(2);
  backend_->FinishOne();
  EXPECT_TRUE(second.result.get().status.ok());
  EXPECT_EQ(pool_->used_bytes(), 4096u);
}

// One result that nobody reads, and a large job that waits for its memory: the others must not notice. With
// the lane that FinishAtOnce gives, a job that starts at once has ended when Submit returns, so that a wait
// of any length would show.
TEST_P(SchedulerMemoryTest, AnUnreadResultAndAWaitingGiantHoldNobodyUp) {
  for (const std::size_t bytes : {std::size_t{1}, kLarge}) {
    scheduler_.reset();
    Make(1, 1, 8 * kLarge);
    backend_->FinishAtOnce();
    Result unread = Submit(1, {.input = 1, .output = kLarge}).result.get();
    Submitted giant = Submit(2, {.input = 4 * kLarge, .output = 4 * kLarge});
    for (int i = 0; i < 5000; ++i) {
      Submitted job = Submit(3, {.input = bytes, .output = bytes});
      ASSERT_TRUE(job.result.get().status.ok());
    }
    EXPECT_FALSE(giant.Ready());
    unread = {};
    EXPECT_TRUE(giant.result.get().status.ok());
  }
}

TEST_P(SchedulerMemoryTest, SmallJobsStartAtOnceWhateverWaitsForMemory) {
  Make(1, 2, 2 * kLarge);
  backend_->FinishAtOnce();
  Result unread = Submit(1, {.input = 1, .output = 2 * kLarge}).result.get();
  Submitted giant = SubmitLarge(2);
  for (int i = 0; i < 5000; ++i) {
    Submitted small = Submit(3);
    ASSERT_EQ(metrics_.queue_depth.Value(), 1) << i;  // the giant waits, and nobody else
    small.result.wait();
  }
  EXPECT_FALSE(giant.Ready());
  unread = {};
  giant.result.wait();
}

TEST_P(SchedulerMemoryTest, ALargeJobGetsTheMemoryOfRunningOnesAlthoughOthersCome) {
  Make(1, 4, 4 * kLarge);
  // Two of two slots each: all memory runs.
  std::vector<Submitted> running = {};
  for (int i = 0; i < 2; ++i) running.push_back(SubmitLarge(i));
  backend_->AwaitLaunches(2);
  Submitted giant = Submit(7, {.input = 2 * kLarge, .output = 2 * kLarge});
  std::vector<Submitted> others;
  for (int i = 0; i < 8; ++i) others.push_back(SubmitLarge(8));
  for (int i = 0; i < 2; ++i) backend_->FinishOne();
  // One after the other the results are read, and their slots come back.
  for (Submitted& job : running) EXPECT_TRUE(job.result.get().status.ok());
  backend_->AwaitLaunches(3);
  EXPECT_EQ(backend_->inputs()[2], 7);  // what came back was kept for it
  backend_->FinishOne();
  EXPECT_TRUE(giant.result.get().status.ok());
  for (std::size_t i = 0; i < others.size(); ++i) {
    backend_->FinishOne();
    Submitted* const ended = AwaitOneOf(others);
    EXPECT_TRUE(ended->result.get().status.ok());
  }
}

TEST_P(SchedulerMemoryTest, ACancelledGiantGivesUpWhatWasKeptForIt) {
  Make(1, 4, 4 * kLarge);
  std::vector<Submitted> running;
  for (int i = 0; i < 2; ++i) running.push_back(SubmitLarge(1));
  backend_->AwaitLaunches(2);
  Submitted giant = Submit(7, {.input = 2 * kLarge, .output = 2 * kLarge});
  backend_->FinishOne();
  EXPECT_TRUE(AwaitOneOf(running)->result.get().status.ok());
  Submitted other = SubmitLarge(8);
  EXPECT_EQ(metrics_.queue_depth.Value(), 2);
  scheduler_->Cancel(giant.id, absl::CancelledError("gone"));
  EXPECT_EQ(giant.result.get().status.code(), absl::StatusCode::kCancelled);
  backend_->AwaitLaunches(3);
  EXPECT_EQ(backend_->inputs()[2], 8);
  for (int i = 0; i < 2; ++i) backend_->FinishOne();
  EXPECT_TRUE(other.result.get().status.ok());
  EXPECT_TRUE(AwaitOneOf(running)->result.get().status.ok());
}

// Eight uploads that take as long as they please to be copied leave lanes for a small job.
TEST_P(SchedulerMemoryTest, PayloadsBeingCopiedHoldNoLane) {
  Make(1, 2, 32 * kLarge);
  std::latch release(1);
  std::vector<Submitted> uploads;
  for (int i = 0; i < 8; ++i) {
    uploads.push_back(
        Submit(1, {.input = 2 * kLarge, .output = kLarge, .while_copying = [&] { release.wait(); }}));
  }
  Submitted small = Submit(2);
  backend_->FinishOne();
  EXPECT_TRUE(small.result.get().status.ok());
  EXPECT_EQ(backend_->inputs(), std::vector<int>{2});
  EXPECT_EQ(metrics_.LaneBusy(0).Value(), 0);
  release.count_down();
  for (std::size_t i = 0; i < uploads.size(); ++i) backend_->FinishOne();
  for (Submitted& job : uploads) EXPECT_TRUE(job.result.get().status.ok());
}

TEST_P(SchedulerMemoryTest, ALargeJobCancelledWhileItWaitsForALaneGivesItsMemoryBack) {
  Make(1, 1);
  Submitted running = Submit(0);
  backend_->AwaitLaunches(1);
  Submitted large = SubmitLarge(1);
  // Nothing happens to it before it has its memory and its payload lies there.
  AwaitThat(
      "the end of the cancelled job",
      [&] {
        if (large.Ready()) return true;
        scheduler_->Cancel(large.id, absl::CancelledError("gone"));
        return false;
      },
      std::chrono::microseconds(0));
  EXPECT_EQ(large.result.get().status.code(), absl::StatusCode::kCancelled);
  backend_->FinishOne();
  static_cast<void>(running.result.get());
  EXPECT_EQ(pool_->used_bytes(), 0u);
}

TEST_P(SchedulerMemoryTest, AJobCancelledWhileItIsCopiedGivesEverythingBack) {
  Make(1, 1);
  std::atomic<bool> cancelled = false;
  Submitted job =
      Submit(1, {.input = kLarge, .output = kLarge, .cancelled = &cancelled, .while_copying = [&] {
                   cancelled = true;
                 }});
  EXPECT_EQ(job.result.get().status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(pool_->used_bytes(), 0u);
  EXPECT_TRUE(backend_->inputs().empty());
}

}  // namespace
}  // namespace warpline
