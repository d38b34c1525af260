// The part of CudaLane that records the times of launches.
#include <cstddef>

#include "kernels/problem.h"
#include "server/device/cuda_lane.h"
#include "server/device/event_overhead.h"

namespace warpline {

double CudaLane::SecondsBetween(std::size_t first_event, std::size_t last_event) const {
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, timing_.events[first_event].get(), timing_.events[last_event].get());
  return milliseconds * 1e-3;
}

double CudaLane::KernelSeconds(std::size_t step, Path path) const {
  const EventOverhead& overhead = device_.event_overhead;
  // With copies before it, a stream has the kernels waiting for the device, as a graph does.
  return WithoutOverhead(SecondsBetween(TimingEvents::BeforeStep(step), TimingEvents::AfterStep(step)),
                         path == Path::kMapped ? overhead.on_stream : overhead.in_graph);
}

void CudaLane::RecordTimes(Entry& entry, const Run& run) {
  switch (run.path) {
    case Path::kGraph:
    case Path::kCalls:
      return RecordWhole(entry, run);
    case Path::kMapped:
      // Nothing was copied, and a kernel that is bound by PCIe has no place under a roof of device memory.
      for (std::size_t i = 0; i < entry.problems.size(); ++i) {
        RecordKernel(entry, i, KernelSeconds(i, run.path));
      }
      return;
    case Path::kBlocks:
      return RecordPieces(entry);
  }
}

void CudaLane::RecordKernel(Entry& entry, std::size_t step, double seconds) {
  KernelSeries& series = entry.series[step];
  series.seconds.Observe(seconds);
  series.bytes.Add(BytesOf(entry.problems[step]));
  series.flops.Add(FlopsOf(entry.problems[step]));
}

void CudaLane::RecordWhole(Entry& entry, const Run& run) {
  const bool alone = WasAlone(run);
  const std::size_t steps = entry.problems.size();
  for (std::size_t i = 0; i < steps; ++i) {
    const double elapsed = KernelSeconds(i, run.path);
    RecordKernel(entry, i, elapsed);
    if (alone && elapsed > 0) {
      entry.roof_ratios[i].Observe(device_.roofline.ShortestSeconds(entry.problems[i]) / elapsed);
    }
  }
  constexpr std::size_t kBegin = TimingEvents::kBeforeCopyIn, kCopiedIn = TimingEvents::kAfterCopyIn;
  const std::size_t computed = TimingEvents::BeforeStep(steps), end = TimingEvents::AfterCopyOut(steps);
  h2d_.bytes.Add(static_cast<double>(entry.input_bytes));
  h2d_.seconds.Add(SecondsBetween(kBegin, kCopiedIn));
  d2h_.bytes.Add(static_cast<double>(entry.output_bytes));
  d2h_.seconds.Add(SecondsBetween(computed, end));
  if (options_.on_timeline) {
    const auto since_epoch = [this](std::size_t event) {
      float milliseconds = 0;
      cudaEventElapsedTime(&milliseconds, device_.epoch.get(), timing_.events[event].get());
      return milliseconds * 1e-3;
    };
    options_.on_timeline(
        {since_epoch(kBegin), since_epoch(kCopiedIn), since_epoch(computed), since_epoch(end)});
  }
}

void CudaLane::RecordPieces(Entry& entry) {
  // The kernels of the pieces are as short as launches, which a roof does not know of.
  double kernels = 0;
  for (std::size_t i = 0; i < entry.cutting->pieces.size(); ++i)
    kernels += SecondsBetween(4 + 2 * i, 5 + 2 * i);
  RecordKernel(entry, 0, kernels);
  h2d_.bytes.Add(static_cast<double>(entry.input_bytes));
  h2d_.seconds.Add(SecondsBetween(0, 1));
  d2h_.bytes.Add(static_cast<double>(entry.output_bytes));
  d2h_.seconds.Add(SecondsBetween(2, 3));
}

}  // namespace warpline
