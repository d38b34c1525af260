// Launchers of the reductions that only the ladder has, for problems of SupportsRungs. `in` and `out` need
// only the alignment of an element. The file of each describes it.
#ifndef WARPLINE_KERNELS_LADDER_REDUCE_KERNELS_H_
#define WARPLINE_KERNELS_LADDER_REDUCE_KERNELS_H_

#include "kernels/cuda_variants.h"

namespace warpline {

CudaLaunch<ReduceProblem> LaunchReduceShared;
CudaLaunch<ReduceProblem> LaunchReduceWarpShuffle;
CudaLaunch<ReduceProblem> LaunchReduceCooperative;
CudaLaunch<ReduceProblem> LaunchReduceSinglePass;

}  // namespace warpline

#endif  // WARPLINE_KERNELS_LADDER_REDUCE_KERNELS_H_
