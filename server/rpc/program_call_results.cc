// The phases of a call in which its results are placed and sent.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"
#include "server/observe/crash_report.h"
#include "server/observe/log.h"
#include "server/observe/nvtx.h"
#include "server/rpc/call_memory.h"
#include "server/rpc/code_name.h"
#include "server/rpc/owning_slice.h"
#include "server/rpc/program_call.h"
#include "server/rpc/received_payloads.h"
#include "server/rpc/result_copies.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/tensor_requests.h"
#include "server/rpc/unary_call.h"

namespace warpline {
namespace {

// The resources that a result holds until it has been sent. The slot is destroyed first, because code that
// waits for all tickets may then destroy the pool.
struct HeldResult {
  Ticket ticket;
  StagingSlot slot;
};

}  // namespace

void ProgramCall::Place(Result result) {
  if (result.status.ok()) {  // is a client still waiting?
    if (MonotonicClock::now() >= call_.deadline()) {
      result.status = absl::DeadlineExceededError("the deadline passed while the request was running");
    } else if (call_.cancelled()) {
      result.status = absl::CancelledError("the client cancelled while the request was running");
    }
  }
  if (!result.status.ok()) {
    context_.metrics.phase(kind_, Phase::kQueue).Observe(result.seconds.queue);
    result.bindings.clear();  // before the answer, so that a withdrawal is confirmed at once
    return Fail(result.status);
  }
  Observe(result.seconds);
  const nvtx::Range range(nvtx::Name::kRespond, call_.number());
  const MonotonicTime start = MonotonicClock::now();
  const OwnerId owner = call_.caller().owner;
  const std::vector<v1::Tensor> placed =
      PlaceOutputs(*plan_, sinks_, streamed_, engine_.send_timeout, owner, engine_.tensors, result);
  result.bindings.clear();  // a client that has the answer may rely on this memory being free
  const bool fetches = std::any_of(plan_->outputs.begin(), plan_->outputs.end(),
                                   [](const PlannedOutput& output) { return output.streamed; });
  if (streamed_ != nullptr && !fetches) streamed_->EndTransfers();
  FreeTensors();
  if (!placed.empty()) {
    call_.OnNotSent([&tensors = engine_.tensors, owner, placed] {
      for (const v1::Tensor& tensor : placed) {
        if (tensor.has_resident()) static_cast<void>(tensors.Drop(owner, tensor.resident().id()));
      }
    });
  }
  Send(result, placed);
  // The call may have been deleted.
  context_.metrics.phase(kind_, Phase::kRespond).Observe(SecondsSince(start));
}

// Drops the tensors that the request wants freed.
void ProgramCall::FreeTensors() const {
  if (message_.extras.empty()) return;
  std::vector<Buffer> memory = engine_.tensors.DropEach(call_.caller().owner, message_.extras);
  // The answer does not wait for slow releases.
  if (!FreesAtOnce(memory)) engine_.workers.Post([memory = std::move(memory)] {});
}

v1::Execution ProgramCall::ExecutionOf(const Result& result) const {
  v1::Execution execution;
  execution.set_request_id(call_.request_id());
  execution.set_backend(std::string(engine_.backend.name()));
  execution.set_device(result.device);
  execution.set_peer_bytes(static_cast<std::int64_t>(peer_bytes_ + result.peer_bytes));
  if (!variants_.empty()) {
    for (const std::string& names : variants_) execution.add_variants(names);
  } else if (plan_->reports) {
    for (std::string& names : VariantsByPart(plan_->program, result.variants)) {
      execution.add_variants(std::move(names));
    }
  }
  v1::StageTimes& times = *execution.mutable_stage_times();
  times.set_convert(seconds_.plan + result.seconds.plan);
  times.set_admission(seconds_.admission + result.seconds.admission);
  times.set_queue(seconds_.queue + result.seconds.queue);
  times.set_stage(seconds_.copy_in + result.seconds.copy_in);
  times.set_device(seconds_.device + result.seconds.device);
  return execution;
}

void ProgramCall::Send(Result& result, const std::vector<v1::Tensor>& placed) {
  const std::vector<std::string> headers =
      codec_.encode({.outputs = plan_->outputs, .placed = placed, .execution = ExecutionOf(result)});
  const std::span<std::byte> outputs = result.output.bytes();
  const grpc::Slice inline_outputs =
      outputs.empty() ? grpc::Slice()
                      : SliceOver(outputs, HeldResult{std::move(result.ticket), std::move(result.output)});
  std::vector<grpc::Slice> slices;
  for (std::size_t i = 0; i < plan_->outputs.size(); ++i) {
    const PlannedOutput& output = plan_->outputs[i];
    slices.emplace_back(headers[i]);
    if (output.spec.bytes == 0 || !output.is_inline()) continue;
    slices.push_back(inline_outputs.sub(output.offset, output.offset + output.spec.bytes));
  }
  context_.metrics.CountSuccess(kind_, source_, SecondsSince(call_.received()));
  CountForOwner("OK");
  Release();
  call_.Respond(grpc::ByteBuffer(slices.data(), slices.size()));
}

}  // namespace warpline
