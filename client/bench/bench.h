// The load generator: one request, sent again and again over some connections, in a closed loop (each answer
// is followed by the next request) or an open one (requests are due at given times, whatever the answers).
#ifndef WARPLINE_CLIENT_BENCH_BENCH_H_
#define WARPLINE_CLIENT_BENCH_BENCH_H_

#include "absl/status/statusor.h"
#include "client/bench/flags.h"
#include "client/bench/stats.h"

namespace warpline::client {

// Checks one response, warms up, measures. A request is measured if it started (open loop: was due) within
// the time measured; latency runs from then until the elements are at their destination. Errors under load
// are counted in the report; an error of the first request is returned.
absl::StatusOr<BenchReport> Bench(const BenchFlags& flags);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_BENCH_BENCH_H_
