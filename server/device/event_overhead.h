// The time that timing a kernel adds to the kernel's own time.
#ifndef WARPLINE_SERVER_DEVICE_EVENT_OVERHEAD_H_
#define WARPLINE_SERVER_DEVICE_EVENT_OVERHEAD_H_

#include <algorithm>

#include "absl/status/statusor.h"
#include "kernels/variant.h"

namespace warpline {

// Seconds by which the time between two events is longer than the kernel between them takes in a row of such
// kernels: the end of one is noticed, the event written and the next one begun. That is the same for short
// kernels and long ones, if a kernel comes before the first event too (EnqueueSteps sees to it): after a copy
// it would be several times as much (docs/benchmarks/history.md#2026-11-23-event-overhead).
struct EventOverhead {
  double in_graph = 0;
  double on_stream = 0;  // behind a gpu::Gate, without which it would contain time of the host
};

// Measures the current device, which must be idle: some milliseconds. `has_gates`: the device uses host
// pointers as they are. Without gates nothing is measured on streams.
absl::StatusOr<EventOverhead> MeasureEventOverhead(const DeviceTraits& traits, bool has_gates);

// Returns the time of a kernel that was timed like this, without the overhead, in seconds. Even an empty
// kernel takes as long as the device needs to begin the next one. So a rate is never infinite.
inline double WithoutOverhead(double elapsed, double overhead) {
  constexpr double kMin = 0.5e-6;
  return std::max(elapsed - overhead, kMin);
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_EVENT_OVERHEAD_H_
