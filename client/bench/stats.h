// The counts of a benchmark (a histogram of latencies, bytes, errors), and their printed form.
#ifndef WARPLINE_CLIENT_BENCH_STATS_H_
#define WARPLINE_CLIENT_BENCH_STATS_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace warpline::client {

// Counts durations from 1 ns to days, with a relative error below 1/128. Not thread-safe.
class Histogram {
 public:
  void Record(std::chrono::nanoseconds duration);
  void Merge(const Histogram& other);
  std::int64_t count() const { return count_; }
  // The exact maximum.
  std::chrono::nanoseconds max() const { return std::chrono::nanoseconds(max_); }
  // Returns the smallest duration that at least `fraction` of the recorded durations do not exceed; 0 if
  // nothing was recorded.
  std::chrono::nanoseconds Quantile(double fraction) const;

 private:
  // Values below 2^8 each have their own bucket. Above that, every power of two has 2^7 buckets.
  static constexpr int kBits = 7;
  static constexpr int kOctaves = 48;
  std::array<std::int64_t, (kOctaves + 2) << kBits> buckets_{};
  std::int64_t count_ = 0;
  std::int64_t max_ = 0;
};

struct BenchStats {
  Histogram latencies;  // of the requests that succeeded
  std::map<absl::StatusCode, std::int64_t> errors;
  absl::Status error;                        // one of the errors
  std::int64_t bytes_in = 0, bytes_out = 0;  // payload of the requests that succeeded

  void AddError(const absl::Status& status);
  void Merge(const BenchStats& other);
};

struct BenchReport {
  std::string title{};
  std::string transport{};
  std::vector<std::string> resident{};
  bool keep = false;
  BenchStats stats{};
  std::chrono::nanoseconds elapsed{};
  // Open loop: requests that were due in the measured time but not sent, because no slot was free in time.
  std::int64_t unsent = 0;
};

std::string FormatReport(const BenchReport& report, bool json);

// Returns OK if the report can be relied on. If any request failed, returns one of the errors, with the
// number of errors. Also returns an error if no request was measured.
absl::Status Verdict(const BenchReport& report);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_BENCH_STATS_H_
