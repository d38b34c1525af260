#include "kernels/map/packs/kernels.h"

namespace warpline {

cudaError_t LaunchMapPacks(const PackPlan& plan, const Operands& operands, cudaStream_t stream) {
  switch (plan.map.op) {
    case PairOp::kCast:
      return LaunchCast(plan, operands, stream);
    case PairOp::kScale:
      return LaunchScale(plan, operands, stream);
    case PairOp::kAdd:
      return LaunchAdd(plan, operands, stream);
  }
  return cudaErrorNotSupported;
}

}  // namespace warpline
