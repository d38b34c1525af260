#include "server/store/streamed_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "server/base/errors.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

constexpr std::size_t kMiB = std::size_t{1} << 20;
// One client may have three quarters.
constexpr std::size_t kTotal = 96 * kMiB, kShare = 72 * kMiB;

class StreamedCallTest : public ::testing::Test {
 protected:
  static absl::StatusOr<Buffer> Allocate(int device, std::size_t bytes) {
    std::shared_ptr<void> memory(std::malloc(bytes + 1), std::free);
    return Buffer({static_cast<std::byte*>(memory.get()), bytes}, {Place::Kind::kHost, device}, memory);
  }
  absl::StatusOr<StreamedCalls::Opened> Open(const std::vector<std::size_t>& bytes,
                                             const Caller& caller = Caller()) {
    return calls_.Open(caller, std::nullopt, bytes);
  }
  void ExpectNothingHeld() {
    EXPECT_EQ(metrics_.UploadBytes(0).Value(), 0);
    EXPECT_EQ(transfers_.used(), 0);
    EXPECT_EQ(calls_.count(), 0);
    EXPECT_TRUE(admission_.AwaitIdle(MonotonicClock::now()));
  }

  Metrics metrics_;
  FairBudget transfers_{{.total = 256 * kMiB, .what = "bytes for transfers"}};
  Admission admission_{{.max_jobs = 100, .max_bytes = std::int64_t{1} << 30}, metrics_};
  StreamedCalls calls_{
      {.device_bytes = {kTotal}, .chunk_bytes = kMiB}, &Allocate, transfers_, admission_, metrics_};
};

TEST_F(StreamedCallTest, AllOfACallIsChargedAtOnceAndGoesWithItsMemory) {
  {
    auto opened = Open({10 * kMiB, 1, 0});
    ASSERT_THAT(opened, IsOk());
    EXPECT_THAT(opened->memory, SizeIs(3));
    EXPECT_EQ(opened->memory[1].bytes().size(), 1);
    EXPECT_EQ(metrics_.UploadBytes(0).Value(), 10 * kMiB + 256);
    EXPECT_EQ(calls_.count(), 1);
    opened->call.reset();
    EXPECT_EQ(transfers_.used(), 0) << "nobody will transfer anything";
    EXPECT_EQ(metrics_.UploadBytes(0).Value(), 10 * kMiB + 256) << "a job may still use the memory";
  }
  ExpectNothingHeld();
}

TEST_F(StreamedCallTest, HasWindowsBySizeButNoMoreThanAnEighthOfTheBudget) {
  EXPECT_EQ(Open({1})->call->windows(), 1);
  EXPECT_EQ(Open({8 * kMiB})->call->windows(), 4);
  EXPECT_EQ(Open({60 * kMiB})->call->windows(), StreamedCall::kMaxWindows);
  FairBudget few({.total = 32 * kMiB, .what = "bytes"});
  StreamedCalls calls({.device_bytes = {kTotal}, .chunk_bytes = kMiB}, &Allocate, few, admission_, metrics_);
  const std::vector<std::size_t> bytes = {60 * kMiB};
  EXPECT_EQ(calls.Open(Caller(), std::nullopt, bytes)->call->windows(), 2);
}

TEST_F(StreamedCallTest, SmallArraysTakeOfTheBudgetForTransfersWhatTheyHave) {
  const auto small = Open({1000, 24});
  EXPECT_EQ(small->call->windows(), 1);
  EXPECT_EQ(transfers_.used(), 1280);
  const auto chunk = Open({kMiB});
  EXPECT_EQ(transfers_.used(), 1280 + kMiB);
  const auto more = Open({kMiB + 1});
  EXPECT_EQ(transfers_.used(), 1280 + 3 * kMiB) << "two chunks of a window";
}

TEST_F(StreamedCallTest, GivesOutEachWindowOnce) {
  const auto opened = Open({5 * kMiB});
  ASSERT_EQ(opened->call->windows(), 2);
  EXPECT_THAT(opened->call->TakeWindow(), IsOk());
  EXPECT_THAT(opened->call->TakeWindow(), IsOk());
  const absl::Status third = opened->call->TakeWindow();
  EXPECT_THAT(third, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("2 transfers")));
  EXPECT_TRUE(RetryAfterOf(third).has_value());
  opened->call->ReturnWindow();
  EXPECT_THAT(opened->call->TakeWindow(), IsOk());
}

TEST_F(StreamedCallTest, WhatDoesNotFitIsRefusedForNowOrForEver) {
  const absl::Status never = Open({40 * kMiB, 40 * kMiB}).status();
  EXPECT_THAT(never, StatusIs(absl::StatusCode::kResourceExhausted,
                              AllOf(HasSubstr("which is 75497472 of the server's 100663296"),
                                    HasSubstr("--upload-bytes"))));
  EXPECT_FALSE(RetryAfterOf(never).has_value());
  EXPECT_THAT(Open({SIZE_MAX, SIZE_MAX, 1}).status(), StatusIs(absl::StatusCode::kResourceExhausted));
  const auto all = Open({kShare});
  ASSERT_THAT(all, IsOk());
  EXPECT_TRUE(RetryAfterOf(Open({1}).status()).has_value());
}

TEST_F(StreamedCallTest, ANewcomerFindsRoom) {
  EXPECT_EQ(calls_.MaxBytesOf(CallerWith(1).claimant), kShare);
  EXPECT_EQ(calls_.MaxBytesOf({.share = 1, .client = 5}), kShare / 4 * 3) << "a connection of an address";
  const auto first = Open({kShare}, CallerWith(1));
  ASSERT_THAT(first, IsOk());
  const auto second = Open({(kTotal - kShare) / 4 * 3}, CallerWith(2));
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(Open({1 * kMiB}, CallerWith(3)), IsOk());
}

TEST_F(StreamedCallTest, GoesToTheDeviceThatIsPreferredIfThereIsRoom) {
  StreamedCalls calls({.device_bytes = {kTotal, 2 * kTotal}, .chunk_bytes = kMiB}, &Allocate, transfers_,
                      admission_, metrics_);
  const std::vector<std::size_t> small = {kMiB}, large = {100 * kMiB};
  EXPECT_EQ(calls.Open(Caller(), std::nullopt, small)->device, 1);
  EXPECT_EQ(calls.Open(Caller(), 0, small)->device, 0);
  EXPECT_EQ(calls.Open(Caller(), 0, large)->device, 1);
}

TEST_F(StreamedCallTest, CallsAreNotOpenedWhileTheServerDrains) {
  calls_.Drain();
  EXPECT_THAT(Open({1}).status(), StatusIs(absl::StatusCode::kUnavailable));
  ExpectNothingHeld();
}

TEST_F(StreamedCallTest, TellsOfProgressAndOfTheEndOnce) {
  const auto opened = Open({8 * kMiB});
  StreamedCall& call = *opened->call;
  ASSERT_EQ(call.min_progress(), kMiB);
  int progress = 0, complete = 0;
  call.OnArrived(5 * kMiB, false);  // nobody waits yet
  call.Await(2, {.progress = [&] { ++progress; }, .complete = [&] { ++complete; }});
  call.OnArrived(kMiB / 2, false);
  EXPECT_EQ(progress, 0) << "a trickle is none";
  call.OnArrived(kMiB / 2, false);
  EXPECT_EQ(progress, 1);
  call.OnArrived(0, true);
  EXPECT_EQ(progress, 1) << "nor is the end of a small upload, of which there may be many";
  EXPECT_EQ(complete, 0);
  call.OnArrived(0, true);
  EXPECT_EQ(complete, 1);
  EXPECT_EQ(progress, 2) << "the last byte is, as what follows may have to wait";
  call.OnArrived(9 * kMiB, true);
  EXPECT_EQ(progress, 2) << "nobody waits any more";
  EXPECT_EQ(complete, 1);
}

TEST_F(StreamedCallTest, WhoHoldsMoreMustMoveMore) {
  const auto opened = Open({64 * kMiB});
  StreamedCall& call = *opened->call;
  ASSERT_EQ(call.min_progress(), 2 * kMiB);
  int progress = 0;
  call.Await(1, {.progress = [&] { ++progress; }, .complete = [] {}});
  call.OnArrived(kMiB, false);
  EXPECT_EQ(progress, 0);
  call.OnArrived(kMiB, false);
  EXPECT_EQ(progress, 1);
  call.OnTakenBack(2 * kMiB);
  call.OnArrived(2 * kMiB, false);
  EXPECT_EQ(progress, 1) << "bytes that had been there already";
}

TEST_F(StreamedCallTest, OnlyBytesOfResultsThatWereNotReadBeforeAreProgress) {
  const auto opened = Open({64 * kMiB});
  StreamedCall& call = *opened->call;
  const std::size_t first = call.AddResult(), second = call.AddResult();
  const auto moves = [&](std::size_t result, const ByteRange& range) {
    const MonotonicTime before = call.progressed();
    call.OnSent(result, range);
    return call.progressed() > before;
  };
  EXPECT_FALSE(moves(first, {0, kMiB}));
  EXPECT_FALSE(moves(first, {0, kMiB})) << "again";
  EXPECT_TRUE(moves(second, {kMiB / 2, 3 * kMiB / 2})) << "of two results together";
  EXPECT_FALSE(moves(second, {0, 2 * kMiB})) << "half of it is new";
  EXPECT_TRUE(moves(first, {kMiB, 2 * kMiB}));
}

TEST_F(StreamedCallTest, ReadingInTinyPiecesTakesNoMemoryWithoutBound) {
  const auto opened = Open({64 * kMiB});
  StreamedCall& call = *opened->call;
  const std::size_t result = call.AddResult();
  for (std::size_t at = 0; at < 32 * kMiB; at += 512) call.OnSent(result, {at, at + 1});
  const MonotonicTime before = call.progressed();
  call.OnSent(result, {kMiB + 1, 4 * kMiB});
  EXPECT_GT(call.progressed(), before) << "what touches the pieces that are known counts";
}

TEST_F(StreamedCallTest, GivesUpTheWaitOfCallsOfWhichNothingMoves) {
  const auto idle = Open({8 * kMiB}), moving = Open({8 * kMiB}), computed = Open({8 * kMiB});
  int given_up = 0;
  idle->call->Await(1, {.progress = [] {}, .complete = [] {}, .give_up = [&] { ++given_up; }});
  moving->call->Await(1, {.progress = [] {}, .complete = [] {}, .give_up = [] { FAIL(); }});
  ASSERT_THAT(moving->call->TakeWindow(), IsOk());
  calls_.EndIdle(absl::Hours(1));
  EXPECT_EQ(given_up, 0);
  calls_.EndIdle(absl::ZeroDuration());
  EXPECT_EQ(given_up, 1);
}

TEST_F(StreamedCallTest, TellsNothingToThoseWhoStoppedWaiting) {
  const auto opened = Open({8 * kMiB});
  opened->call->Await(1, {.progress = [] { FAIL(); }, .complete = [] { FAIL(); }});
  opened->call->StopWaiting();
  opened->call->OnArrived(8 * kMiB, true);
}

}  // namespace
}  // namespace warpline
