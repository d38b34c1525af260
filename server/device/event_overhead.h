// The time that timing a kernel adds to the kernel's own time.
#ifndef WARPLINE_SERVER_DEVICE_EVENT_OVERHEAD_H_
#define WARPLINE_SERVER_DEVICE_EVENT_OVERHEAD_H_

#include <algorithm>

#include "absl/status/statusor.h"
#include "kernels/variant.h"

namespace warpline {

// Returns the overhead of timing a kernel, in seconds: the time between two events around it, less the time
// that it takes in a row of such kernels. The device must notice the end of one operation, write the event
// and begin the next one. The overhead is the same for short and long kernels, if a kernel also runs before
// the first event (EnqueueSteps sees to it). After a copy it would be several times as large
// (docs/benchmarks/history.md#2026-11-23-event-overhead). A gpu::Gate holds the work until all of it is
// enqueued; otherwise the time would include time of the host. The current device must be idle for some
// milliseconds, and must use host pointers as they are.
absl::StatusOr<double> MeasureEventOverhead(const DeviceTraits& traits);

// Returns the time of a kernel that was timed like this, without the overhead, in seconds. It is at least
// kMin, because even an empty kernel takes as long as the device needs to begin the next one. So a rate is
// never infinite.
inline double WithoutOverhead(double elapsed, double overhead) {
  constexpr double kMin = 0.5e-6;
  return std::max(elapsed - overhead, kMin);
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_EVENT_OVERHEAD_H_
