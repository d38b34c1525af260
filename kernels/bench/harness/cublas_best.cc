#include "kernels/bench/harness/cublas_best.h"

#include <algorithm>
#include <vector>

#include "kernels/bench/harness/check.h"
#include "kernels/gemm/kernels.h"

namespace warpline::bench {
namespace {

// The few that are close to one another may be taken for one another: their times are.
constexpr int kRounds = 5;

// Some algorithms are refused at launch for what the heuristic did not look at.
bool Runs(const Launcher& launch, cudaStream_t stream) {
  cudaError_t error = launch(0, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (error == cudaSuccess) return true;
  if (gpu::IsContextLost(error)) Check(error, "running an algorithm of cuBLASLt");
  cudaGetLastError();
  return false;
}

}  // namespace

Launcher FindBestOfCublas(const GemmProblem& problem, const OperandSlots& slots, const Device& device) {
  cudaStream_t stream = device.stream.get();
  std::vector<Launcher> launchers;
  const bool supported = IsGemmInput(problem.dtype) && GemmCublasSupports(problem, device.context.traits);
  for (int rank = 0; supported && rank < kCublasAlgorithms; ++rank) {
    CudaContext context = device.context;
    context.configuration = rank;
    Launcher launch = [&slots, problem, context](int slot, cudaStream_t s) {
      return LaunchGemmCublas(problem, slots.At(slot), context, s);
    };
    if (Runs(launch, stream)) launchers.push_back(std::move(launch));
  }
  if (launchers.empty()) return nullptr;
  const std::vector<Timing> timings = TimeInTurns(launchers, slots.count(), kRounds, stream);
  const auto best = std::min_element(timings.begin(), timings.end(),
                                     [](const Timing& a, const Timing& b) { return a.median < b.median; });
  return launchers[static_cast<std::size_t>(best - timings.begin())];
}

}  // namespace warpline::bench
