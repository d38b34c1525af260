// Launchers of the elementwise operations: cast, scale, add.
#ifndef WARPLINE_KERNELS_ELEMENTWISE_ELEMENTWISE_KERNELS_H_
#define WARPLINE_KERNELS_ELEMENTWISE_ELEMENTWISE_KERNELS_H_

#include "kernels/cuda_variants.h"

namespace warpline {

CudaLaunch<ElementwiseProblem> LaunchElementwise;

}  // namespace warpline

#endif  // WARPLINE_KERNELS_ELEMENTWISE_ELEMENTWISE_KERNELS_H_
