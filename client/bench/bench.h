// The load generator. It sends one request repeatedly over several connections. In a closed loop, the next
// request follows each answer. In an open loop, requests are due at given times, independent of the answers.
#ifndef WARPLINE_CLIENT_BENCH_BENCH_H_
#define WARPLINE_CLIENT_BENCH_BENCH_H_

#include "absl/status/statusor.h"
#include "client/bench/flags.h"
#include "client/bench/stats.h"

namespace warpline::client {

// Checks one response, warms up, and measures. A request is measured if it started (open loop: was due)
// within the measured time. Its latency ends when the elements are at their destination. Errors under load
// are counted in the report. An error of the first request is returned.
absl::StatusOr<BenchReport> Bench(const BenchFlags& flags);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_BENCH_BENCH_H_
