// The second plan of a program whose results have sizes that depend on its elements.
#ifndef WARPLINE_SERVER_RPC_COPY_PLAN_H_
#define WARPLINE_SERVER_RPC_COPY_PLAN_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "server/plan/plan.h"
#include "server/rpc/codec/convert_tensor.h"

namespace warpline {

// The plan that copies each output of `counted` to where it is to go. Its inputs are these outputs, in memory
// of their own on the device, with the shapes that they have turned out to have. `sizes` has those of their
// first axes; it means nothing for outputs whose shapes were known. INVALID_ARGUMENT, with the size that was
// found, if the inline results are larger than the limit.
absl::StatusOr<Plan> CopyPlan(const Plan& counted, std::span<const std::int64_t> sizes, const Limits& limits);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_COPY_PLAN_H_
