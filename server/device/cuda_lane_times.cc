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
  return WithoutOverhead(SecondsBetween(TimingEvents::BeforeStep(step), TimingEvents::AfterStep(step)),
                         path == Path::kGraph ? overhead.in_graph : overhead.on_stream);
}

void CudaLane::RecordTimes(Entry& entry, const Run& run) {
  switch (run.path) {
    case Path::kGraph:
      return RecordWhole(entry, run);
    case Path::kCalls:
      return gate_->Held() ? RecordWhole(entry, run) : void();
    case Path::kMapped:
      return gate_->Held() ? RecordSteps(entry, run) : void();
    case Path::kBlocks:
      return RecordPieces(entry, run);
  }
}

void CudaLane::RecordKernel(Entry& entry, std::size_t step, const Run& run, double seconds) {
  KernelSeries& series = entry.series[static_cast<std::size_t>(run.memory)][step];
  series.seconds.Observe(seconds);
  series.bytes.Add(BytesOf(entry.problems[step]));
  series.flops.Add(FlopsOf(entry.problems[step]));
}

void CudaLane::RecordSteps(Entry& entry, const Run& run) {
  // A kernel that is bound by PCIe has no place under a roof of device memory.
  const bool has_roof = run.memory == KernelMemory::kDevice && WasAlone(run);
  for (std::size_t i = 0; i < entry.problems.size(); ++i) {
    const double elapsed = KernelSeconds(i, run.path);
    RecordKernel(entry, i, run, elapsed);
    if (has_roof && elapsed > 0) {
      entry.roof_ratios[i].Observe(device_.roofline.ShortestSeconds(entry.problems[i]) / elapsed);
    }
  }
}

void CudaLane::RecordWhole(Entry& entry, const Run& run) {
  RecordSteps(entry, run);
  const std::size_t steps = entry.problems.size();
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

void CudaLane::RecordPieces(Entry& entry, const Run& run) {
  // The kernels of the pieces are as short as launches, which a roof does not know of.
  double kernels = 0;
  for (std::size_t i = 0; i < entry.cutting->pieces.size(); ++i)
    kernels += SecondsBetween(4 + 2 * i, 5 + 2 * i);
  RecordKernel(entry, 0, run, kernels);
  h2d_.bytes.Add(static_cast<double>(entry.input_bytes));
  h2d_.seconds.Add(SecondsBetween(0, 1));
  d2h_.bytes.Add(static_cast<double>(entry.output_bytes));
  d2h_.seconds.Add(SecondsBetween(2, 3));
}

}  // namespace warpline
