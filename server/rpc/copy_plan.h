// The second plan of a program whose result sizes depend on its elements.
#ifndef WARPLINE_SERVER_RPC_COPY_PLAN_H_
#define WARPLINE_SERVER_RPC_COPY_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "server/plan/plan.h"
#include "server/rpc/codec/convert_tensor.h"

namespace warpline {

// Returns the outputs of `counted` with their final shapes. `sizes` are the sizes of their first axes; it is
// ignored for outputs whose shapes were known before.
std::vector<TensorSpec> FoundSpecs(const Plan& counted, std::span<const std::int64_t> sizes);

// Returns the plan that copies each output of `counted` to its destination. Its inputs are these outputs,
// with the shapes `found`, in memory of their own on the device. An output that is `kept` is not copied: it
// becomes a resident tensor in its present memory. INVALID_ARGUMENT, with the final size, if the inline
// results exceed the limit.
absl::StatusOr<Plan> CopyPlan(const Plan& counted, std::span<const TensorSpec> found,
                              const std::vector<bool>& kept, const Limits& limits);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_COPY_PLAN_H_
