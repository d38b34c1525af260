// Launchers of the reduction kernels. `in` and `out` need only the alignment of an element.
#ifndef WARPLINE_KERNELS_REDUCE_KERNELS_H_
#define WARPLINE_KERNELS_REDUCE_KERNELS_H_

#include "kernels/cuda_variants.h"
#include "kernels/reduce/plan.h"

namespace warpline {

CudaLaunch<ReduceProblem> LaunchReduceNaive;

// For sums of problems that SupportsRungs accepts.
CudaLaunch<ReduceProblem> LaunchReduceAtomic;

// The rung `cub`, in cub_<dtype>.cu.
template <DType kDType>
cudaError_t LaunchReduceCubTyped(const ReduceProblem& problem, const Operands& operands, cudaStream_t stream);

// Launch the kernel of a plan, for the NumberClassOf the elements.
using LaunchReducePlan = cudaError_t(const ReduceProblem& problem, const ReducePlan& plan,
                                     const Operands& operands, const CudaContext& context,
                                     cudaStream_t stream);
LaunchReducePlan LaunchVectorizedF32;
LaunchReducePlan LaunchVectorizedF64;
LaunchReducePlan LaunchVectorizedI32;
LaunchReducePlan LaunchVectorizedU32;
LaunchReducePlan LaunchVectorizedI64;
LaunchReducePlan LaunchVectorizedU64;

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_KERNELS_H_
