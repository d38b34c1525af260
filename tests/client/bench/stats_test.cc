#include "client/bench/stats.h"

#include <gtest/gtest.h>

#include <chrono>

#include "client/cli/error.h"

namespace warpline::client {
namespace {

using std::chrono::nanoseconds;

TEST(HistogramTest, IsExactForSmallValues) {
  Histogram histogram;
  for (int i = 1; i <= 100; ++i) histogram.Record(nanoseconds(i));
  EXPECT_EQ(histogram.Quantile(0.5).count(), 50);
  EXPECT_EQ(histogram.Quantile(0.99).count(), 99);
  EXPECT_EQ(histogram.Quantile(1).count(), 100);
  EXPECT_EQ(histogram.max().count(), 100);
}

TEST(HistogramTest, IsWithinOnePercentForAnyValue) {
  for (std::int64_t value = 1; value < std::int64_t{1} << 53; value += value / 3 + 1) {
    Histogram histogram;
    histogram.Record(nanoseconds(value));
    histogram.Record(nanoseconds(std::int64_t{1} << 54));
    const double got = static_cast<double>(histogram.Quantile(0.5).count());
    EXPECT_GE(got, static_cast<double>(value));
    EXPECT_LE(got, static_cast<double>(value) * (1 + 1.0 / 127));
  }
}

TEST(HistogramTest, MergesAndHandlesNothing) {
  Histogram a, b;
  EXPECT_EQ(a.Quantile(0.5).count(), 0);
  a.Record(nanoseconds(10));
  b.Record(nanoseconds(1000000));
  b.Record(nanoseconds(-5));
  a.Merge(b);
  EXPECT_EQ(a.count(), 3);
  EXPECT_EQ(a.max().count(), 1000000);
  EXPECT_EQ(a.Quantile(0.1).count(), 0);
}

TEST(FormatReportTest, SaysWhereTheArraysWere) {
  const BenchReport report{.title = "t", .transport = "shm", .resident = {"a", "b"}, .keep = true};
  EXPECT_EQ(FormatReport(report, true)
                .rfind(R"({"title":"t","transport":"shm","resident":["a","b"],"keep":true,"requests":0,)", 0),
            0u);
}

TEST(FormatReportTest, CountsBytesBothWays) {
  BenchReport report{.title = "echo"};
  report.stats.latencies.Record(nanoseconds(1'000'000));
  report.stats.bytes_in = report.stats.bytes_out = 1'000'000'000;
  report.stats.errors[absl::StatusCode::kUnavailable] = 2;
  report.elapsed = std::chrono::seconds(2);
  const std::string text = FormatReport(report, false);
  EXPECT_NE(text.find("1.000 GB/s"), std::string::npos) << text;
  EXPECT_NE(text.find("UNAVAILABLE 2"), std::string::npos) << text;
  EXPECT_NE(FormatReport(report, true).find("\"gigabytes_per_second\":1.0"), std::string::npos);
}

TEST(VerdictTest, IsGoodOnlyIfAllWasMeasuredAndNothingFailed) {
  BenchReport report;
  EXPECT_EQ(ExitCode(Verdict(report)), 1);
  for (int i = 0; i < 9; ++i) report.stats.latencies.Record(nanoseconds(1));
  EXPECT_TRUE(Verdict(report).ok());
  BenchStats other;
  other.AddError(absl::UnavailableError("draining"));
  report.stats.Merge(other);
  EXPECT_EQ(Verdict(report), absl::UnavailableError("1 of 10 requests failed: draining"));
}

}  // namespace
}  // namespace warpline::client
