#include "server/observe/owner_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace warpline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Name(OwnerId owner) { return absl::StrCat("token:", owner); }

TEST(OwnerMetricsTest, TheFirstOwnersHaveSeriesAndTheRestShareOne) {
  Metrics metrics;
  OwnerMetrics owners(2, Name, metrics);
  for (const OwnerId owner : {7, 8, 9, 10, 7}) {
    owners.Of(owner).jobs.Add(1);
    owners.CountRequest(owner, "OK");
    owners.CountRequest(owner, "NOT_FOUND");
  }
  const std::string text = metrics.Scrape();
  EXPECT_THAT(text, HasSubstr("warpline_owner_jobs{owner=\"token:7\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("warpline_owner_jobs{owner=\"token:8\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("warpline_owner_jobs{owner=\"other\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("warpline_owner_requests_total{code=\"OK\",owner=\"token:7\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("warpline_owner_requests_total{code=\"NOT_FOUND\",owner=\"other\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("token:9")));
}

TEST(OwnerMetricsTest, ALimitOfZeroMeansOneForAll) {
  Metrics metrics;
  OwnerMetrics owners(0, Name, metrics);
  owners.Of(1).bytes.Add(5);
  owners.Of(2).bytes.Add(6);
  EXPECT_THAT(metrics.Scrape(), HasSubstr("warpline_owner_admission_bytes{owner=\"other\"} 11\n"));
}

}  // namespace
}  // namespace warpline
