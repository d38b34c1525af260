// Launchers of maps.
#ifndef WARPLINE_KERNELS_MAP_KERNELS_H_
#define WARPLINE_KERNELS_MAP_KERNELS_H_

#include "kernels/cuda_variants.h"
#include "kernels/map/plan.h"

namespace warpline {

cudaError_t LaunchMapInterpreter(const MapProblem& problem, const MapPlan& plan, const Operands& operands,
                                 const CudaContext& context, cudaStream_t stream);

// Supports only copies with runs that are contiguous in both arrays.
bool MapCopySupports(const MapProblem& problem, const DeviceTraits& traits);
CudaLaunch<MapProblem> LaunchMapCopy;

}  // namespace warpline

#endif  // WARPLINE_KERNELS_MAP_KERNELS_H_
