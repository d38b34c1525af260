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

void CudaLane::RecordTimes(const Program& program, const Run& run) {
  switch (run.path) {
    case Path::kCopied:
      return gate_->Held() ? RecordWhole(program, run) : void();
    case Path::kMapped:
      return gate_->Held() ? RecordSteps(program, run) : void();
    case Path::kBlocks:
      return RecordPieces(program, run);
  }
}

void CudaLane::RecordKernel(const Problem& problem, std::size_t step, const Run& run, double seconds) {
  const KernelSeries& series = series_.Of(problem, run.variants[step], run.memory);
  series.seconds.Observe(seconds);
  series.bytes.Add(BytesOf(problem));
  series.flops.Add(FlopsOf(problem));
}

void CudaLane::RecordSteps(const Program& program, const Run& run) {
  // The roofline is about device memory, so it does not apply to a kernel that is limited by PCIe.
  const bool under_roof = run.memory == KernelMemory::kDevice && WasAlone(run);
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Problem& problem = program.steps[i].problem;
    const double elapsed = WithoutOverhead(
        SecondsBetween(TimingEvents::BeforeStep(i), TimingEvents::AfterStep(i)), device_.event_overhead);
    RecordKernel(problem, i, run, elapsed);
    const double shortest = device_.roofline.ShortestSeconds(problem);  // 0: not known
    if (under_roof && shortest > 0) {
      series_.RoofRatioOf(problem, run.variants[i]).Observe(shortest / elapsed);
    }
  }
}

void CudaLane::RecordWhole(const Program& program, const Run& run) {
  RecordSteps(program, run);
  const std::size_t steps = program.steps.size();
  constexpr std::size_t kBegin = TimingEvents::kBeforeCopyIn, kCopiedIn = TimingEvents::kAfterCopyIn;
  const std::size_t computed = TimingEvents::BeforeStep(steps), end = TimingEvents::AfterCopyOut(steps);
  h2d_.bytes.Add(static_cast<double>(run.input_bytes));
  h2d_.seconds.Add(SecondsBetween(kBegin, kCopiedIn));
  d2h_.bytes.Add(static_cast<double>(run.output_bytes));
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

void CudaLane::RecordPieces(const Program& program, const Run& run) {
  // The roofline is not used here: kernels of pieces are as short as launches, which it does not model.
  double kernels = 0;
  for (std::size_t i = 0; i < run.plan->cutting->pieces.size(); ++i)
    kernels += SecondsBetween(4 + 2 * i, 5 + 2 * i);
  RecordKernel(program.steps.front().problem, 0, run, kernels);
  h2d_.bytes.Add(static_cast<double>(run.input_bytes));
  h2d_.seconds.Add(SecondsBetween(0, 1));
  d2h_.bytes.Add(static_cast<double>(run.output_bytes));
  d2h_.seconds.Add(SecondsBetween(2, 3));
}

}  // namespace warpline
