// Launchers of the reduction kernels. `in` and `out` need the alignment of an element only.
#ifndef WARPLINE_KERNELS_REDUCE_REDUCE_KERNELS_H_
#define WARPLINE_KERNELS_REDUCE_REDUCE_KERNELS_H_

#include "kernels/cuda_variants.h"

namespace warpline {

CudaLaunch<ReduceProblem> LaunchReduceNaive;
CudaLaunch<ReduceProblem> LaunchReduceAny;

// Instantiated in reduce_<dtype>.cu, for the dtypes and operations of HasTypedKernel.
template <DType kDType>
cudaError_t LaunchReduceTyped(const ReduceProblem& problem, const Operands& operands,
                              const CudaContext& context, cudaStream_t stream);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_REDUCE_KERNELS_H_
