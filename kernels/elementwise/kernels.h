// Launchers of the elementwise operations: cast, scale, add.
#ifndef WARPLINE_KERNELS_ELEMENTWISE_KERNELS_H_
#define WARPLINE_KERNELS_ELEMENTWISE_KERNELS_H_

#include "kernels/cuda_variants.h"

namespace warpline {

CudaLaunch<ElementwiseProblem> LaunchElementwiseNaive;

// Of one operation each. cudaErrorNotSupported if an address is no multiple of 16 bytes, and, of one
// operand, if its rows are not dense and no multiples of a pack.
CudaLaunch<ElementwiseProblem> LaunchCast;
CudaLaunch<ElementwiseProblem> LaunchScale;
CudaLaunch<ElementwiseProblem> LaunchAdd;

}  // namespace warpline

#endif  // WARPLINE_KERNELS_ELEMENTWISE_KERNELS_H_
