// The sinks of a request: where its results go.
#ifndef WARPLINE_SERVER_RPC_RESULT_SINKS_H_
#define WARPLINE_SERVER_RPC_RESULT_SINKS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/wire/scanner.h"
#include "server/plan/plan.h"
#include "server/store/tensor_store.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// The sink of one result. The plan's output determines which of the two members is set.
struct ResultSink {
  absl::Duration lease;   // for a result that stays on its device
  v1::RegionSlice slice;  // for a result that goes to a region
};
// One entry for each output that is not inline, in the order of the outputs.
using ResultSinks = std::vector<ResultSink>;

// INVALID_ARGUMENT, with the field, if the store does not allow the length of a lease.
absl::StatusOr<ResultSinks> SinksOf(const Plan& plan, const ScannedMessage& message,
                                    const TensorStore& tensors);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_RESULT_SINKS_H_
