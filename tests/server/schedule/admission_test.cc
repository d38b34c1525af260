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
  auto first = admission_.Admit(1, CallerWith(kAnonymous));
  auto second = admission_.Admit(1, CallerWith(kAnonymous));
  ASSERT_TRUE(first.ok() && second.ok());
  const auto third = admission_.Admit(1, CallerWith(kAnonymous));
  EXPECT_EQ(third.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(RetryAfterOf(third.status()), absl::Milliseconds(50));
}

TEST_F(AdmissionTest, TheRetryDelayIsThatOfTheOptions) {
  Admission admission({.max_jobs = 1, .max_bytes = 100, .retry_after = absl::Milliseconds(70)}, metrics_);
  const auto first = admission.Admit(1, CallerWith(kAnonymous));
  EXPECT_EQ(RetryAfterOf(admission.Admit(1, CallerWith(kAnonymous)).status()), absl::Milliseconds(70));
}

TEST_F(AdmissionTest, RefusesBytesPastTheLimit) {
  auto first = admission_.Admit(60, CallerWith(kAnonymous));
  ASSERT_TRUE(first.ok());
  // Small requests get a quarter more.
  EXPECT_EQ(admission_.Admit(66, CallerWith(kAnonymous)).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(admission_.Admit(65, CallerWith(kAnonymous)).ok());
}

TEST_F(AdmissionTest, TicketsReturnTheirShare) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(admission_.Admit(100, CallerWith(kAnonymous)).ok());
}

TEST_F(AdmissionTest, DrainingRefusesWithUnavailable) {
  admission_.Drain();
  EXPECT_EQ(admission_.Admit(1, CallerWith(kAnonymous)).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(AdmissionTest, AwaitIdleWaitsForTickets) {
  auto ticket = admission_.Admit(1, CallerWith(kAnonymous));
  EXPECT_FALSE(admission_.AwaitIdle(MonotonicClock::now()));
  ticket->Return();
  EXPECT_TRUE(admission_.AwaitIdle(After(absl::Seconds(10))));
}

class AdmissionSharesTest : public ::testing::Test {
 protected:
  // A request of more than 10 bytes is not small.
  Metrics metrics_;
  Admission admission_{{.max_jobs = 8, .max_bytes = 1000, .small_bytes = 10}, metrics_};
  std::vector<Ticket> tickets_;

  bool Admit(std::int64_t bytes, OwnerId owner = 1) { return AdmitFor(bytes, CallerWith(owner)); }
  bool AdmitFor(std::int64_t bytes, const Caller& caller) {
    auto ticket = admission_.Admit(bytes, caller);
    if (ticket.ok()) tickets_.push_back(*std::move(ticket));
    return ticket.ok();
  }
};

TEST_F(AdmissionSharesTest, AQuarterOfTheJobsIsKeptForSmallRequests) {
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(Admit(11));
  EXPECT_FALSE(Admit(11));
  EXPECT_TRUE(Admit(1));
  EXPECT_TRUE(Admit(1));
  EXPECT_FALSE(Admit(1));
}

TEST_F(AdmissionSharesTest, SmallRequestsGetAQuarterOfTheBytesMore) {
  EXPECT_TRUE(Admit(500));
  EXPECT_TRUE(Admit(500));
  EXPECT_FALSE(Admit(11));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(Admit(10));
}

TEST_F(AdmissionSharesTest, ARequestWhoseBytesLieElsewhereIsNotSmallForThat) {
  std::vector<Ticket> tickets;
  const auto admit = [&](std::int64_t size) {
    auto ticket = admission_.Admit(/*bytes=*/0, CallerWith(1), size);
    if (ticket.ok()) tickets.push_back(*std::move(ticket));
    return ticket.ok();
  };
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(admit(1 << 20));
  EXPECT_FALSE(admit(1 << 20)) << "a quarter of the jobs is kept for small ones";
  EXPECT_TRUE(admit(1));
}

TEST_F(AdmissionSharesTest, OneRequestMayTakeAllBytes) { EXPECT_TRUE(Admit(1000)); }

TEST_F(AdmissionSharesTest, AnOwnerAloneMayTakeEverythingAndBesideOthersItsShare) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Admit(1, 1));
  EXPECT_TRUE(Admit(1, 2));
  EXPECT_FALSE(Admit(1, 1));  // has half of the jobs, beside one other
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Admit(1, 2));
  EXPECT_FALSE(Admit(1, 2));
  tickets_.clear();
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(Admit(1, 1));
}

TEST_F(AdmissionSharesTest, BytesAreSharedLikeJobs) {
  EXPECT_TRUE(Admit(400, 1));
  EXPECT_TRUE(Admit(100, 2));
  EXPECT_FALSE(Admit(110, 1));
  EXPECT_TRUE(Admit(150, 2));
}

// Clients of a peer have no identity.
Caller Client(OwnerId peer, ClientId client) { return {.claimant = {.share = peer, .client = client}}; }

TEST_F(AdmissionSharesTest, TheClientsOfAPeerShareItsPart) {
  for (const ClientId client : {1, 2, 3}) EXPECT_TRUE(AdmitFor(1, Client(1, client)));
  EXPECT_TRUE(AdmitFor(1, Client(2, 1)));
  // Half of the jobs are admitted. Each peer may have four, so each client of the first one has its part.
  EXPECT_FALSE(AdmitFor(1, Client(1, 1)));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(AdmitFor(1, Client(2, 1)));
  EXPECT_FALSE(AdmitFor(1, Client(2, 1)));
  EXPECT_TRUE(AdmitFor(1, Client(1, 4))) << "a new client gets some";
}

TEST_F(AdmissionSharesTest, UnreadResultsOfOneClientAreNotHeldAgainstAnotherOfItsPeer) {
  ASSERT_TRUE(AdmitFor(600, Client(1, 1)));
  tickets_.front().MarkUnread();
  EXPECT_FALSE(AdmitFor(1, Client(1, 1)));
  EXPECT_TRUE(AdmitFor(1, Client(1, 2)));
}

TEST_F(AdmissionSharesTest, UnreadResultsEndWhatAnOwnerGets) {
  ASSERT_TRUE(Admit(600, 1));
  tickets_.front().MarkUnread();
  EXPECT_EQ(admission_.Admit(1, CallerWith(1)).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Admit(1, 2));
  tickets_.clear();
  EXPECT_TRUE(Admit(1, 1));
}

TEST(AdmissionQuotaTest, AnOwnerGetsNoMoreThanItsQuotaHoweverMuchIsLeft) {
  Metrics metrics;
  Admission admission(
      {.max_jobs = 100,
       .max_bytes = 1000,
       .limits_of =
           [](OwnerId owner) { return owner == 1 ? OwnerLimits{.jobs = 2, .bytes = 50} : OwnerLimits(); }},
      metrics);
  const auto first = admission.Admit(20, CallerWith(1)), second = admission.Admit(20, CallerWith(1));
  ASSERT_TRUE(first.ok() && second.ok());
  const absl::Status jobs = admission.Admit(1, CallerWith(1)).status();
  EXPECT_EQ(jobs.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(jobs.message().find("its quota is 2"), absl::string_view::npos) << jobs;
  EXPECT_TRUE(RetryAfterOf(jobs).has_value());
  EXPECT_TRUE(admission.Admit(500, CallerWith(2)).ok()) << "others have none";
}

TEST(AdmissionQuotaTest, WhoHasNoIdentityHasOneQuotaWithAllOthers) {
  Metrics metrics;
  Admission admission(
      {.max_jobs = 100, .max_bytes = 1000, .limits_of = [](OwnerId) { return OwnerLimits{.jobs = 2}; }},
      metrics);
  const auto first = admission.Admit(1, Client(1, 1)), second = admission.Admit(1, Client(2, 1));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_FALSE(admission.Admit(1, Client(3, 1)).ok());
}

TEST(AdmissionQuotaTest, OfBytesItSaysWhetherWaitingHelps) {
  Metrics metrics;
  Admission admission(
      {.max_jobs = 100, .max_bytes = 1000, .limits_of = [](OwnerId) { return OwnerLimits{.bytes = 50}; }},
      metrics);
  const auto first = admission.Admit(20, CallerWith(1));
  const absl::Status full = admission.Admit(40, CallerWith(1)).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RetryAfterOf(full).has_value());
  const absl::Status never = admission.Admit(51, CallerWith(1)).status();
  EXPECT_EQ(never.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(RetryAfterOf(never).has_value());
}

}  // namespace
}  // namespace warpline
