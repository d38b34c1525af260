#include "client/src/attempts.h"

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace warpline::client {
namespace {

// The answer of a server that asks for a delay.
absl::Status Full(absl::Duration delay) {
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(delay));
  retry.mutable_retry_delay()->set_nanos(
      static_cast<int>(absl::ToInt64Nanoseconds(delay % absl::Seconds(1))));
  google::rpc::Status details;
  static_cast<void>(details.add_details()->PackFrom(retry));
  absl::Status status = absl::ResourceExhaustedError("full");
  status.SetPayload("type.googleapis.com/google.rpc.Status", absl::Cord(details.SerializeAsString()));
  return status;
}

TEST(AttemptsTest, TheDelayOfAFullServerDoublesUpToFourSeconds) {
  Attempts attempts(/*max_retries=*/7, absl::InfiniteFuture());
  for (const int milliseconds : {100, 200, 400, 800, 1600, 3200, 4000}) {
    EXPECT_EQ(attempts.DelayAfter(Full(absl::Milliseconds(100))), absl::Milliseconds(milliseconds));
  }
  EXPECT_EQ(attempts.DelayAfter(Full(absl::Milliseconds(100))), std::nullopt) << "there are seven";
}

TEST(AttemptsTest, ALongDelayIsNotMadeLonger) {
  Attempts attempts(/*max_retries=*/2, absl::InfiniteFuture());
  EXPECT_EQ(attempts.DelayAfter(Full(absl::Seconds(10))), absl::Seconds(10));
  EXPECT_EQ(attempts.DelayAfter(Full(absl::Seconds(10))), absl::Seconds(10));
}

TEST(AttemptsTest, NoneWouldBeginBehindTheDeadline) {
  Attempts attempts(/*max_retries=*/7, absl::Now() + absl::Milliseconds(500));
  EXPECT_EQ(attempts.DelayAfter(Full(absl::Milliseconds(900))), std::nullopt);
  EXPECT_EQ(attempts.failed(), 0);
}

TEST(AttemptsTest, ARefusalWithoutADelayIsFinal) {
  EXPECT_EQ(Attempts(7, absl::InfiniteFuture()).DelayAfter(absl::ResourceExhaustedError("too large")),
            std::nullopt);
}

}  // namespace
}  // namespace warpline::client
