// Launchers of the elementwise operations: cast, scale, add.
#ifndef WARPLINE_KERNELS_ELEMENTWISE_KERNELS_H_
#define WARPLINE_KERNELS_ELEMENTWISE_KERNELS_H_

#include "kernels/cuda_variants.h"

namespace warpline {

CudaLaunch<ElementwiseProblem> LaunchElementwiseNaive;

// Launchers of one operation each. They return cudaErrorNotSupported if an address is not a multiple of 16
// bytes. With one operand, they also do so if its rows are neither dense nor multiples of a pack.
CudaLaunch<ElementwiseProblem> LaunchCast;
CudaLaunch<ElementwiseProblem> LaunchScale;
CudaLaunch<ElementwiseProblem> LaunchAdd;

}  // namespace warpline

#endif  // WARPLINE_KERNELS_ELEMENTWISE_KERNELS_H_
