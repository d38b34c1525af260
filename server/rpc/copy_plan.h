// The second plan of a program whose results have sizes that depend on its elements.
#ifndef WARPLINE_SERVER_RPC_COPY_PLAN_H_
#define WARPLINE_SERVER_RPC_COPY_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "server/plan/plan.h"
#include "server/rpc/codec/convert_tensor.h"

namespace warpline {

// The outputs of `counted` with the shapes that they have turned out to have. `sizes` has those of their
// first axes; it means nothing for outputs whose shapes were known.
std::vector<TensorSpec> FoundSpecs(const Plan& counted, std::span<const std::int64_t> sizes);

// The plan that copies each output of `counted` to where it is to go. Its inputs are these outputs, in memory
// of their own on the device, with the shapes `found`. An output that is `kept` goes nowhere: it becomes a
// resident tensor in the memory that it has. INVALID_ARGUMENT, with the size that was found, if the inline
// results are larger than the limit.
absl::StatusOr<Plan> CopyPlan(const Plan& counted, std::span<const TensorSpec> found,
                              const std::vector<bool>& kept, const Limits& limits);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_COPY_PLAN_H_
