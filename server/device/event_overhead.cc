#include "server/device/event_overhead.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "kernels/gpu/capture.h"
#include "kernels/gpu/empty_kernel.h"
#include "kernels/gpu/gate.h"
#include "kernels/gpu/handle.h"
#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"

namespace warpline {
namespace {

using gpu::ToStatus;

constexpr char kDoing[] = "measuring what events add to kernels";

class Probe {
 public:
  static absl::StatusOr<Probe> Create(unsigned ctas) {
    Probe probe(ctas);
    ASSIGN_OR_RETURN(probe.stream_, gpu::CreateStream());
    for (gpu::Event& event : probe.events_) {
      ASSIGN_OR_RETURN(event, gpu::CreateTimedEvent());
    }
    return probe;
  }

  cudaStream_t stream() const { return stream_.get(); }

  // Enqueues a kernel between two events. As in EnqueueSteps, a kernel of one CTA runs before the first
  // event.
  absl::Status EnqueueTimed() {
    RETURN_IF_ERROR(ToStatus(gpu::LaunchEmptyKernel(1, stream()), kDoing));
    RETURN_IF_ERROR(ToStatus(cudaEventRecord(events_[0].get(), stream()), kDoing));
    RETURN_IF_ERROR(EnqueueKernels(1));
    return ToStatus(cudaEventRecord(events_[1].get(), stream()), kDoing);
  }

  // Returns the median time between the two events that `enqueue` records, over some rounds.
  template <typename Enqueue>
  absl::StatusOr<double> MedianSeconds(Enqueue enqueue) {
    constexpr int kRounds = 40;
    std::vector<float> milliseconds;
    for (int round = 0; round < kRounds; ++round) {
      RETURN_IF_ERROR(enqueue());
      RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(stream()), kDoing));
      float elapsed = 0;
      RETURN_IF_ERROR(ToStatus(cudaEventElapsedTime(&elapsed, events_[0].get(), events_[1].get()), kDoing));
      milliseconds.push_back(elapsed);
    }
    std::nth_element(milliseconds.begin(), milliseconds.begin() + kRounds / 2, milliseconds.end());
    return milliseconds[kRounds / 2] * 1e-3;
  }

  // Returns the time of `count` kernels in a graph, including what the events before and after the graph
  // add.
  absl::StatusOr<double> SecondsOfRow(int count) {
    ASSIGN_OR_RETURN(const gpu::GraphExec row, Row(count));
    return MedianSeconds([&]() -> absl::Status {
      RETURN_IF_ERROR(ToStatus(cudaEventRecord(events_[0].get(), stream()), kDoing));
      RETURN_IF_ERROR(ToStatus(cudaGraphLaunch(row.get(), stream()), kDoing));
      return ToStatus(cudaEventRecord(events_[1].get(), stream()), kDoing);
    });
  }

 private:
  explicit Probe(unsigned ctas) : ctas_(ctas) {}

  absl::Status EnqueueKernels(int count) {
    for (int i = 0; i < count; ++i) {
      RETURN_IF_ERROR(ToStatus(gpu::LaunchEmptyKernel(ctas_, stream()), kDoing));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<gpu::GraphExec> Row(int count) {
    ASSIGN_OR_RETURN(gpu::Capture capture, gpu::Capture::Begin(stream()));
    RETURN_IF_ERROR(EnqueueKernels(count));
    ASSIGN_OR_RETURN(const gpu::Graph graph, std::move(capture).End());
    ASSIGN_OR_RETURN(gpu::GraphExec exec, gpu::Instantiate(graph));
    RETURN_IF_ERROR(ToStatus(cudaGraphUpload(exec.get(), stream()), kDoing));
    return exec;
  }

  unsigned ctas_;
  gpu::Stream stream_;
  std::array<gpu::Event, 2> events_;
};

}  // namespace

absl::StatusOr<double> MeasureEventOverhead(const DeviceTraits& traits) {
  // A kernel that fills the device has this many CTAs. A single CTA would begin and end faster.
  constexpr unsigned kCtasPerMultiprocessor = 8;
  constexpr int kShortRow = 8, kLongRow = 40;
  ASSIGN_OR_RETURN(Probe probe, Probe::Create(static_cast<unsigned>(std::max(1, traits.multiprocessors)) *
                                              kCtasPerMultiprocessor));
  ASSIGN_OR_RETURN(const double short_row, probe.SecondsOfRow(kShortRow));
  ASSIGN_OR_RETURN(const double long_row, probe.SecondsOfRow(kLongRow));
  const double kernel = (long_row - short_row) / (kLongRow - kShortRow);
  ASSIGN_OR_RETURN(gpu::Gate gate, gpu::Gate::Create());
  ASSIGN_OR_RETURN(const double timed, probe.MedianSeconds([&]() -> absl::Status {
    RETURN_IF_ERROR(gate.Enqueue(probe.stream()));
    absl::Status enqueued = probe.EnqueueTimed();
    gate.Open();
    return enqueued;
  }));
  // Limits the result: other processes on the device can only make it too large, and may be gone a moment
  // later.
  constexpr double kMax = 20e-6;
  return std::clamp(timed - kernel, 0.0, kMax);
}

}  // namespace warpline
