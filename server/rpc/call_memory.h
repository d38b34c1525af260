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

// Gives the job its bindings, with the memory of inputs that are resident, and that of all slices of regions.
// An upload gets its memory later. `referred` has the memory of the references of the message.
absl::Status BindOperands(const Plan& plan, const ScannedMessage& message, std::span<const Buffer> referred,
                          OwnerId owner, RegionStore& regions, Job& job);

// Sets find_sinks, which takes memory on the job's device for the outputs that stay there.
void FindSinksFor(const PlanPtr& plan, const Caller& caller, TensorStore& tensors, Job& job);

// Chooses the device of a job with resident operands or results, and sees which operands have to be copied
// there. Any device may run other jobs.
void ChooseDevice(const Plan& plan, const Caller& caller, const Backend& backend, const TensorStore& tensors,
                  Job& job);

// The binding of output `output` of the plan.
Binding& OutputBinding(const Plan& plan, std::size_t output, Bindings& bindings);

// Returns where the outputs lie that do not go inline, in the form of the response. Makes resident tensors of
// the outputs that stay on their device. `streamed` and `lease` are those of results that the client fetches.
std::vector<v1::Tensor> PlaceOutputs(const Plan& plan, const ResultSinks& sinks,
                                     const std::shared_ptr<StreamedCall>& streamed, absl::Duration lease,
                                     OwnerId owner, TensorStore& tensors, Result& result);

// The uploads of a plan, by number.
std::vector<TensorSpec> UploadsOf(const Plan& plan);
// The bytes of its arrays that travel apart from messages: the uploads, then the results in their order.
std::vector<std::size_t> StreamedBytes(const Plan& plan);
// Gives these arrays their memory, in the same order. Returns the bytes of the results.
std::size_t BindStreams(const Plan& plan, std::span<const Buffer> memory, Bindings& bindings);

// Returns where the arrays of a request lie. The results of a program with a second plan (Plan::counts) lie
// where the request wants them.
RequestSource SourceOf(const Plan& plan);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CALL_MEMORY_H_
