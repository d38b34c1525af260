// Launchers of the transpositions that only the ladder has. The file of each describes it.
#ifndef WARPLINE_KERNELS_LADDER_TRANSPOSE_KERNELS_H_
#define WARPLINE_KERNELS_LADDER_TRANSPOSE_KERNELS_H_

#include "kernels/cuda_variants.h"

namespace warpline {

CudaLaunch<TransposeProblem> LaunchTransposeMultiElement;
CudaLaunch<TransposeProblem> LaunchTransposeNaiveWrite;
CudaLaunch<TransposeProblem> LaunchTransposePadded;
CudaLaunch<TransposeProblem> LaunchTransposeShared;
CudaLaunch<TransposeProblem> LaunchTransposeShifted;
CudaLaunch<TransposeProblem> LaunchTransposeShuffle;
CudaLaunch<TransposeProblem> LaunchTransposeSwizzled;
CudaLaunch<TransposeProblem> LaunchTransposeSwizzledVectorized;
CudaLaunch<TransposeProblem> LaunchTransposeUnpadded;
CudaLaunch<TransposeProblem> LaunchTransposeVectorized;

}  // namespace warpline

#endif  // WARPLINE_KERNELS_LADDER_TRANSPOSE_KERNELS_H_
