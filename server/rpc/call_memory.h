// The memory of a call's operands and results.
#ifndef WARPLINE_SERVER_RPC_CALL_MEMORY_H_
#define WARPLINE_SERVER_RPC_CALL_MEMORY_H_

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/wire/scanner.h"
#include "server/base/owner.h"
#include "server/device/backend.h"
#include "server/memory/buffer.h"
#include "server/observe/metrics.h"
#include "server/plan/binding.h"
#include "server/plan/plan.h"
#include "server/rpc/result_sinks.h"
#include "server/schedule/job.h"
#include "server/store/region_store.h"
#include "server/store/streamed_call.h"
#include "server/store/tensor_store.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// Gives the job its bindings, with the memory of resident inputs and of all slices of regions. Uploads get
// their memory later. `referred` has the memory of the references of the message.
absl::Status BindOperands(const Plan& plan, const ScannedMessage& message, std::span<const Buffer> referred,
                          OwnerId owner, RegionStore& regions, Job& job);

// Sets find_sinks, which allocates memory on the job's device for the outputs that stay there.
void FindSinksFor(const PlanPtr& plan, const Caller& caller, TensorStore& tensors, Job& job);

// The binding of output `output` of the plan.
Binding& OutputBinding(const Plan& plan, std::size_t output, Bindings& bindings);

// Returns the places of the outputs that are not inline, in the form of the response. Outputs that stay on
// their device become resident tensors. `streamed` and `lease` are for results that the client fetches.
std::vector<v1::Tensor> PlaceOutputs(const Plan& plan, const ResultSinks& sinks,
                                     const std::shared_ptr<StreamedCall>& streamed, absl::Duration lease,
                                     OwnerId owner, TensorStore& tensors, Result& result);

// Returns the uploads of a plan, by number.
std::vector<TensorSpec> UploadsOf(const Plan& plan);
// Returns the sizes of the arrays that are transferred outside messages: first the uploads, then the results
// in their order.
std::vector<std::size_t> StreamedBytes(const Plan& plan);
// Sets the memory of these arrays, in the same order. Returns the bytes of the results.
std::size_t BindStreams(const Plan& plan, std::span<const Buffer> memory, Bindings& bindings);

// Returns where the arrays of a request are. For a program with a second plan (Plan::counts), this uses the
// final places of the results.
RequestSource SourceOf(const Plan& plan);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CALL_MEMORY_H_
