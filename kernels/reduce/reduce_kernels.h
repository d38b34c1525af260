// Launchers of the reduction kernels. `in` and `out` need the alignment of an element only.
#ifndef WARPLINE_KERNELS_REDUCE_REDUCE_KERNELS_H_
#define WARPLINE_KERNELS_REDUCE_REDUCE_KERNELS_H_

#include "kernels/cuda_variants.h"

namespace warpline {

CudaLaunch<ReduceProblem> LaunchReduceNaive;
CudaLaunch<ReduceProblem> LaunchReduceAny;

// The rungs, for the dtypes of HasRungs and operations of HasTypedKernel; `atomic` for sums alone.
CudaLaunch<ReduceProblem> LaunchReduceAtomic;
CudaLaunch<ReduceProblem> LaunchReduceShared;
CudaLaunch<ReduceProblem> LaunchReduceCooperative;
CudaLaunch<ReduceProblem> LaunchReduceSinglePass;

// The rung `cub`, in reduce_cub_<dtype>.cu.
template <DType kDType>
cudaError_t LaunchReduceCubTyped(const ReduceProblem& problem, const Operands& operands, cudaStream_t stream);

// Instantiated in reduce_<dtype>.cu, for the dtypes and operations of HasTypedKernel.
template <DType kDType>
cudaError_t LaunchReduceTyped(const ReduceProblem& problem, const Operands& operands,
                              const CudaContext& context, cudaStream_t stream);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_REDUCE_KERNELS_H_
