// The time that timing a kernel adds to the kernel's own time.
#ifndef WARPLINE_SERVER_DEVICE_EVENT_OVERHEAD_H_
#define WARPLINE_SERVER_DEVICE_EVENT_OVERHEAD_H_

#include <algorithm>

#include "absl/status/statusor.h"
#include "kernels/variant.h"

namespace warpline {

// Returns the seconds by which the time between two events on a stream is longer than the kernel between them
// takes in a row of such kernels: the end of one is noticed, the event written and the next one begun. That
// is the same for short kernels and long ones, if a kernel comes before the first event too (EnqueueSteps
// sees to it): after a copy it would be several times as much
// (docs/benchmarks/history.md#2026-11-23-event-overhead). All of it waits behind a gpu::Gate, without which
// the time would contain time of the host. The current device must be idle, for some milliseconds, and use
// host pointers as they are.
absl::StatusOr<double> MeasureEventOverhead(const DeviceTraits& traits);

// Returns the time of a kernel that was timed like this, without the overhead, in seconds. Even an empty
// kernel takes as long as the device needs to begin the next one. So a rate is never infinite.
inline double WithoutOverhead(double elapsed, double overhead) {
  constexpr double kMin = 0.5e-6;
  return std::max(elapsed - overhead, kMin);
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_EVENT_OVERHEAD_H_
