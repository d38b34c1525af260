// Variant `naive`: one thread per result, one element after another in the order of the index, in f64 or
// 64-bit integers: the oracle, for every type and operation.
//
// Limit: there are only as many threads as results, each with one load in flight. If rows are summed,
// neighbouring threads read addresses a row apart. A sum of all elements keeps only one thread busy.
// Next, `atomic`: all threads of the device work on each result.
#include "kernels/gpu/real.cuh"
#include "kernels/launch_grids.h"
#include "kernels/reduce/canonical.h"
#include "kernels/reduce/kernels.h"
#include "kernels/reduce/wide.h"

namespace warpline {
namespace {

constexpr int kThreads = 128;

template <typename Monoid>
__global__ void __launch_bounds__(kThreads)
    ReduceSerially(const void* x, void* y, DType dtype, const __grid_constant__ CanonicalReduce reduce,
                   const __grid_constant__ ReduceFinish finish, std::int64_t first_block) {
  const std::int64_t result = (first_block + blockIdx.x) * kThreads + threadIdx.x;
  if (result >= reduce.results) return;
  const std::int64_t base = reduce.kept.Offset(result);
  typename Monoid::Acc acc = Monoid::Identity();
  for (std::int64_t r = 0; r < reduce.reduced_count; ++r) {
    Monoid::Add(acc, LoadReal<typename Monoid::Value>(dtype, x, base + reduce.reduced.Offset(r)), r);
  }
  Monoid::Finish(acc, finish, [&](auto value) { StoreReal(finish.out_dtype, y, result, value); });
}

}  // namespace

cudaError_t LaunchReduceNaive(const ReduceProblem& problem, const Operands& operands,
                              const CudaContext& /*context*/, cudaStream_t stream) {
  const CanonicalReduce reduce = Canonicalize(problem);
  const ReduceFinish finish = FinishOf(problem);
  return VisitWideMonoid(problem, [&]<typename Monoid>(std::type_identity<Monoid>) {
    return LaunchGrids(CeilDiv(reduce.results, kThreads), [&](std::int64_t first, unsigned grid) {
      ReduceSerially<Monoid>
          <<<grid, kThreads, 0, stream>>>(operands.in[0], operands.out, problem.dtype, reduce, finish, first);
    });
  });
}

}  // namespace warpline
