// Launchers of the reduction kernels. `in` and `out` need the alignment of an element only.
#ifndef WARPLINE_KERNELS_REDUCE_KERNELS_H_
#define WARPLINE_KERNELS_REDUCE_KERNELS_H_

#include "kernels/cuda_variants.h"

namespace warpline {

CudaLaunch<ReduceProblem> LaunchReduceNaive;

// The rungs, for the dtypes of HasRungs and operations of HasTypedKernel; `atomic` for sums alone.
CudaLaunch<ReduceProblem> LaunchReduceAtomic;
CudaLaunch<ReduceProblem> LaunchReduceWarpShuffle;
CudaLaunch<ReduceProblem> LaunchReduceShared;
CudaLaunch<ReduceProblem> LaunchReduceCooperative;
CudaLaunch<ReduceProblem> LaunchReduceSinglePass;

// The rung `cub`, in cub_<dtype>.cu.
template <DType kDType>
cudaError_t LaunchReduceCubTyped(const ReduceProblem& problem, const Operands& operands, cudaStream_t stream);

// The server's choice, by NumberClassOf the elements.
CudaLaunch<ReduceProblem> LaunchVectorizedF32;
CudaLaunch<ReduceProblem> LaunchVectorizedF64;
CudaLaunch<ReduceProblem> LaunchVectorizedI32;
CudaLaunch<ReduceProblem> LaunchVectorizedU32;
CudaLaunch<ReduceProblem> LaunchVectorizedI64;
CudaLaunch<ReduceProblem> LaunchVectorizedU64;

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_KERNELS_H_
