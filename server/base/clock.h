// The clock by which the server measures durations and keeps deadlines. It never jumps, as the wall clock
// does when somebody sets it.
#ifndef WARPLINE_SERVER_BASE_CLOCK_H_
#define WARPLINE_SERVER_BASE_CLOCK_H_

#include <chrono>

#include "absl/time/time.h"

namespace warpline {

using MonotonicClock = std::chrono::steady_clock;
using MonotonicTime = MonotonicClock::time_point;

// MonotonicTime::max() stands for a deadline that never comes.
inline constexpr MonotonicTime kNever = MonotonicTime::max();

inline double SecondsSince(MonotonicTime start) {
  return std::chrono::duration<double>(MonotonicClock::now() - start).count();
}

// The time `wait` from now; kNever where that is beyond what the clock can count.
inline MonotonicTime After(absl::Duration wait) {
  const MonotonicTime now = MonotonicClock::now();
  if (wait >= absl::FromChrono(kNever - now)) return kNever;
  return now + absl::ToChronoNanoseconds(wait);
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_CLOCK_H_
