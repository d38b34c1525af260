#include "server/schedule/admission.h"

#include <gtest/gtest.h>

#include <vector>

#include "server/base/errors.h"

namespace warpline {
namespace {

class AdmissionTest : public ::testing::Test {
 protected:
  Metrics metrics_;
  Admission admission_{{.max_jobs = 2, .max_bytes = 100}, metrics_};
};

TEST_F(AdmissionTest, RefusesTheJobPastTheCountWithARetryDelay) {
  auto first = admission_.Admit(1);
  auto second = admission_.Admit(1);
  ASSERT_TRUE(first.ok() && second.ok());
  const auto third = admission_.Admit(1);
  EXPECT_EQ(third.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RetryAfterOf(third.status()).has_value());
}

TEST_F(AdmissionTest, RefusesBytesPastTheLimit) {
  auto first = admission_.Admit(60);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(admission_.Admit(41).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(admission_.Admit(40).ok());
}

TEST_F(AdmissionTest, TicketsReturnTheirShare) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(admission_.Admit(100).ok());
}

TEST_F(AdmissionTest, DrainingRefusesWithUnavailable) {
  admission_.Drain();
  EXPECT_EQ(admission_.Admit(1).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(AdmissionTest, AwaitIdleWaitsForTickets) {
  auto ticket = admission_.Admit(1);
  EXPECT_FALSE(admission_.AwaitIdle(absl::Now()));
  ticket->Return();
  EXPECT_TRUE(admission_.AwaitIdle(absl::Now() + absl::Seconds(10)));
}

}  // namespace
}  // namespace warpline
