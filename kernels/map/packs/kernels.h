// The launcher of packs, and the launchers for single operations.
#ifndef WARPLINE_KERNELS_MAP_PACKS_KERNELS_H_
#define WARPLINE_KERNELS_MAP_PACKS_KERNELS_H_

#include "kernels/cuda_variants.h"
#include "kernels/map/packs/plan.h"

namespace warpline {

cudaError_t LaunchMapPacks(const PackPlan& plan, const Operands& operands, cudaStream_t stream);

cudaError_t LaunchCast(const PackPlan& plan, const Operands& operands, cudaStream_t stream);
cudaError_t LaunchScale(const PackPlan& plan, const Operands& operands, cudaStream_t stream);
cudaError_t LaunchAdd(const PackPlan& plan, const Operands& operands, cudaStream_t stream);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_MAP_PACKS_KERNELS_H_
