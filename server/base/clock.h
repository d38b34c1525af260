// The clock for measuring durations and keeping deadlines. It never jumps, unlike the wall clock when someone
// sets it.
#ifndef WARPLINE_SERVER_BASE_CLOCK_H_
#define WARPLINE_SERVER_BASE_CLOCK_H_

#include <chrono>

#include "absl/time/time.h"

namespace warpline {

using MonotonicClock = std::chrono::steady_clock;
using MonotonicTime = MonotonicClock::time_point;

// A deadline that never comes.
inline constexpr MonotonicTime kNever = MonotonicTime::max();

inline double SecondsSince(MonotonicTime start) {
  return std::chrono::duration<double>(MonotonicClock::now() - start).count();
}

// Returns the time `wait` from now; kNever if the clock cannot represent it.
inline MonotonicTime After(absl::Duration wait) {
  const MonotonicTime now = MonotonicClock::now();
  if (wait >= absl::FromChrono(kNever - now)) return kNever;
  return now + absl::ToChronoNanoseconds(wait);
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_CLOCK_H_
