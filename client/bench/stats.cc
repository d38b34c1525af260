#include "client/bench/stats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/error.h"
#include "client/cli/output.h"

namespace warpline::client {
namespace {

struct NamedQuantile {
  const char* name;
  double fraction;
};
constexpr NamedQuantile kQuantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};

double Seconds(std::chrono::nanoseconds duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

void Histogram::Record(std::chrono::nanoseconds duration) {
  const std::int64_t value = std::max<std::int64_t>(duration.count(), 0);
  const int shift = std::clamp(
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value))) - kBits - 1, 0, kOctaves);
  const std::size_t bucket =
      (static_cast<std::size_t>(shift) << kBits) + static_cast<std::size_t>(value >> shift);
  ++buckets_[std::min(bucket, buckets_.size() - 1)];
  ++count_;
  max_ = std::max(max_, value);
}

void Histogram::Merge(const Histogram& other) {
  for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

std::chrono::nanoseconds Histogram::Quantile(double fraction) const {
  const auto rank = static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(count_)));
  std::int64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen == 0 || seen < rank) continue;
    const std::size_t shift = i < (2u << kBits) ? 0 : (i >> kBits) - 1;
    const std::int64_t upper = ((static_cast<std::int64_t>(i - (shift << kBits)) + 1) << shift) - 1;
    return std::chrono::nanoseconds(std::min(upper, max_));
  }
  return std::chrono::nanoseconds(0);
}

void BenchStats::AddError(const absl::Status& status) {
  ++errors[status.code()];
  error.Update(status);
}

void BenchStats::Merge(const BenchStats& other) {
  latencies.Merge(other.latencies);
  error.Update(other.error);
  for (const auto& [code, count] : other.errors) errors[code] += count;
  bytes_in += other.bytes_in;
  bytes_out += other.bytes_out;
}

std::string FormatReport(const BenchReport& report, bool json) {
  const BenchStats& stats = report.stats;
  const double elapsed = Seconds(report.elapsed);
  const std::int64_t done = stats.latencies.count();
  const double rate = elapsed > 0 ? static_cast<double>(done) / elapsed : 0;
  const double gigabytes = static_cast<double>(stats.bytes_in + stats.bytes_out) / 1e9;
  const double throughput = elapsed > 0 ? gigabytes / elapsed : 0;
  if (json) {
    nlohmann::ordered_json latencies, errors = nlohmann::ordered_json::object();
    for (const auto& [name, fraction] : kQuantiles) {
      latencies[name] = Seconds(stats.latencies.Quantile(fraction));
    }
    latencies["max"] = Seconds(stats.latencies.max());
    for (const auto& [code, count] : stats.errors) errors[absl::StatusCodeToString(code)] = count;
    return JsonLine({{"title", report.title},
                     {"transport", report.transport},
                     {"resident", report.resident},
                     {"keep", report.keep},
                     {"requests", done},
                     {"seconds", elapsed},
                     {"requests_per_second", rate},
                     {"gigabytes_per_second", throughput},
                     {"latency_seconds", std::move(latencies)},
                     {"errors", std::move(errors)},
                     {"unsent", report.unsent}});
  }
  std::vector<std::string> errors, latencies;
  for (const auto& [code, count] : stats.errors) {
    errors.push_back(absl::StrCat(absl::StatusCodeToString(code), " ", count));
  }
  for (const auto& [name, fraction] : kQuantiles) {
    latencies.push_back(absl::StrFormat("%s %.3f", name, Seconds(stats.latencies.Quantile(fraction)) * 1e3));
  }
  std::string text = absl::StrFormat(
      "%s\n  %d requests in %.3f s: %.1f requests/s, %.3f GB/s\n  latency ms: %s, max %.3f\n  errors: %s\n",
      report.title, done, elapsed, rate, throughput, absl::StrJoin(latencies, ", "),
      Seconds(stats.latencies.max()) * 1e3, errors.empty() ? "none" : absl::StrJoin(errors, ", "));
  if (report.unsent > 0) {
    absl::StrAppend(&text, "  not sent: ", report.unsent,
                    " (the rate is above what --concurrency sustains)\n");
  }
  return text;
}

absl::Status Verdict(const BenchReport& report) {
  const BenchStats& stats = report.stats;
  const std::int64_t done = stats.latencies.count();
  std::int64_t failed = 0;
  for (const auto& [code, count] : stats.errors) failed += count;
  if (failed > 0) {
    return absl::Status(stats.error.code(), absl::StrCat(failed, " of ", failed + done,
                                                         " requests failed: ", stats.error.message()));
  }
  if (done == 0) return LocalError("no request was measured: --duration is too short for one");
  return absl::OkStatus();
}

}  // namespace warpline::client
