#include "server/rpc/kernel_service.h"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"
#include "server/observe/log.h"
#include "server/observe/nvtx.h"
#include "server/rpc/code_name.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/unary_call.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {
namespace {

double SecondsSince(absl::Time start) { return absl::ToDoubleSeconds(absl::Now() - start); }

std::vector<std::span<const std::byte>> Spans(const std::vector<grpc::Slice>& slices) {
  std::vector<std::span<const std::byte>> spans;
  spans.reserve(slices.size());
  for (const grpc::Slice& slice : slices) {
    spans.emplace_back(reinterpret_cast<const std::byte*>(slice.begin()), slice.size());
  }
  return spans;
}

// The payloads of a request as received, each with its place in the input region.
class Payloads {
 public:
  Payloads(std::vector<grpc::Slice> slices, std::vector<PayloadRange> ranges, const MemoryPlan& plan)
      : slices_(std::move(slices)), ranges_(std::move(ranges)) {
    for (std::size_t i = 0; i < ranges_.size(); ++i) offsets_.push_back(plan.tensors[i].offset);
  }

  void CopyTo(std::span<std::byte> region, CopySite& site) const {
    const std::vector<std::span<const std::byte>> spans = Spans(slices_);
    std::vector<std::span<const std::byte>> pieces;
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      pieces.clear();
      ForEachPiece(spans, ranges_[i], [&](std::span<const std::byte> piece) { pieces.push_back(piece); });
      CopyPayload(site, region.data() + offsets_[i], pieces);
    }
  }

 private:
  std::vector<grpc::Slice> slices_;
  std::vector<PayloadRange> ranges_;
  std::vector<std::size_t> offsets_;
};

// A slice over a staging slot: gRPC sends straight from pinned memory, and the slot is free when the last
// reference to the slice is gone.
grpc::Slice SliceOver(StagingSlot slot, std::size_t bytes) {
  struct Owner {
    StagingSlot slot;
    // gRPC counts references with atomics that a sanitizer cannot see; this one it can.
    std::atomic<bool> handed_over = false;
  };
  auto* owner = new Owner{std::move(slot)};
  std::byte* const data = owner->slot.bytes().data();
  owner->handed_over.store(true, std::memory_order_release);  // the last access here
  const auto destroy = [](void* memory) {
    auto* owner = static_cast<Owner*>(memory);
    static_cast<void>(owner->handed_over.load(std::memory_order_acquire));
    delete owner;
  };
  return grpc::Slice(data, bytes, destroy, owner);
}

// The name of the step that writes it; empty where steps have none.
std::string NameOfOutput(const Program& program, const std::vector<std::string>& step_names, int tensor) {
  for (std::size_t i = 0; i < step_names.size(); ++i) {
    if (program.steps[i].output == tensor) return step_names[i];
  }
  return "";
}

// What a job counts for in the budget.
std::int64_t BytesOf(const MemoryPlan& plan) {
  return static_cast<std::int64_t>(plan.input_bytes + plan.output_bytes);
}

}  // namespace

KernelService::KernelService(const Limits& limits, const Backend& backend, const StagingPool& pool,
                             Admission& admission, Scheduler& scheduler, Metrics& metrics)
    : limits_(limits),
      backend_(backend),
      pool_(pool),
      admission_(admission),
      scheduler_(scheduler),
      metrics_(metrics),
      transpose_schema_(PayloadSchema::For(v1::TransposeRequest::descriptor())),
      gemm_schema_(PayloadSchema::For(v1::GemmRequest::descriptor())),
      reduce_schema_(PayloadSchema::For(v1::ReduceRequest::descriptor())),
      run_schema_(PayloadSchema::For(v1::RunRequest::descriptor())),
      stage_site_(metrics, "stage_in") {
  metrics.HostCopyBytes("respond");  // a copy that is not made: results are sent from where they lie
}

void KernelService::Transpose(UnaryCall& call) {
  Handle<v1::TransposeRequest>(call, RequestKind::kTranspose, transpose_schema_);
}
void KernelService::Gemm(UnaryCall& call) { Handle<v1::GemmRequest>(call, RequestKind::kGemm, gemm_schema_); }
void KernelService::Reduce(UnaryCall& call) {
  Handle<v1::ReduceRequest>(call, RequestKind::kReduce, reduce_schema_);
}

void KernelService::Run(UnaryCall& call) { Handle<v1::RunRequest>(call, RequestKind::kRun, run_schema_); }

// A request that would never fit is refused here: later it would only wait.
absl::Status KernelService::CheckSize(RequestKind kind, const Job& job) const {
  const std::string_view field = kind == RequestKind::kRun    ? "program"
                                 : kind == RequestKind::kGemm ? "a"  // of all operands, the first
                                                              : "x";
  const auto refused = [field](const absl::Status& status) {
    return FieldError(field, std::string_view(status.message().data(), status.message().size()));
  };
  if (const absl::Status fits = backend_.CheckFits(job.program, job.plan); !fits.ok()) return refused(fits);
  if (const absl::Status fits = admission_.CheckFits(BytesOf(job.plan)); !fits.ok()) return refused(fits);
  if (pool_.CanEverHold(job.plan.input_bytes, job.plan.output_bytes)) return absl::OkStatus();
  return FieldError(field, absl::StrCat("the request's ", job.plan.input_bytes, " bytes and its result's ",
                                        job.plan.output_bytes, " do not fit into ", pool_.total_bytes(),
                                        " bytes of staging memory"));
}

template <typename RequestProto>
absl::StatusOr<KernelService::Prepared> KernelService::Prepare(UnaryCall& call, RequestKind kind,
                                                               const PayloadSchema& schema) {
  const nvtx::Range range(nvtx::Name::kConvert, call.number());
  std::vector<grpc::Slice> slices = call.TakeRequest();
  ASSIGN_OR_RETURN(ScannedMessage message, ScanMessage(schema, Spans(slices)));
  RequestProto request;
  if (!request.ParseFromString(message.header)) {
    return absl::InvalidArgumentError("the request is not a valid protobuf message of its type");
  }
  ASSIGN_OR_RETURN(Conversion conversion, FromProto(request, message.payloads, limits_));
  Prepared prepared;
  Job& job = prepared.job;
  job.program = std::move(conversion.program);
  for (std::size_t i = 0; i < job.program.steps.size(); ++i) {
    const Step& step = job.program.steps[i];
    RETURN_IF_ERROR(InStep(backend_.CheckVariant(step.problem, step.variant), i, conversion.step_names));
  }
  job.plan = PlanMemory(job.program);
  RETURN_IF_ERROR(CheckSize(kind, job));
  job.signature = Signature(job.program);
  job.seconds.convert = SecondsSince(call.received());
  metrics_.stage(kind, Stage::kConvert).Observe(job.seconds.convert);

  const absl::Time asked = absl::Now();
  call.ReturnProvisionalTicket();
  ASSIGN_OR_RETURN(job.ticket, admission_.Admit(BytesOf(job.plan)));
  job.seconds.admission = SecondsSince(asked);
  metrics_.stage(kind, Stage::kAdmission).Observe(job.seconds.admission);

  for (int output : job.program.outputs) {
    prepared.outputs.push_back(
        {{NameOfOutput(job.program, conversion.step_names, output), job.program.tensors[output]},
         job.plan.tensors[output].offset});
  }
  job.fill_inputs = [this, payloads = Payloads(std::move(slices), std::move(conversion.payloads), job.plan)](
                        std::span<std::byte> region) { payloads.CopyTo(region, stage_site_); };
  return prepared;
}

template <typename RequestProto>
void KernelService::Handle(UnaryCall& call, RequestKind kind, const PayloadSchema& schema) {
  absl::StatusOr<Prepared> prepared = Prepare<RequestProto>(call, kind, schema);
  if (!prepared.ok()) return RespondError(call, kind, prepared.status());
  Job job = std::move(prepared->job);
  job.number = call.number();
  job.deadline = call.deadline();
  job.cancelled = &call.cancelled();
  job.done = [this, &call, kind, outputs = std::move(prepared->outputs)](Result result) {
    Complete(call, kind, outputs, std::move(result));
  };
  // The call outlives this function even if it is answered inside Submit: its tags come back to this thread.
  const Scheduler::JobId id = scheduler_.Submit(std::move(job));
  call.OnCancel([this, id, deadline = call.deadline()] {
    scheduler_.Cancel(id,
                      absl::Now() >= deadline
                          ? absl::DeadlineExceededError("the deadline passed while the request was queued")
                          : absl::CancelledError("the client cancelled while the request was queued"));
  });
}

void KernelService::Complete(UnaryCall& call, RequestKind kind, const std::vector<Output>& outputs,
                             Result result) {
  metrics_.stage(kind, Stage::kQueue).Observe(result.seconds.queue);
  if (result.status.ok()) {  // is anybody still waiting for it?
    if (absl::Now() >= call.deadline()) {
      result.status = absl::DeadlineExceededError("the deadline passed while the request was running");
    } else if (call.cancelled()) {
      result.status = absl::CancelledError("the client cancelled while the request was running");
    }
  }
  if (result.status.ok()) {
    metrics_.stage(kind, Stage::kStage).Observe(result.seconds.stage);
    metrics_.stage(kind, Stage::kDevice).Observe(result.seconds.device);
    Respond(call, kind, outputs, result);
  } else {
    RespondError(call, kind, result.status);
  }
}

void KernelService::Respond(UnaryCall& call, RequestKind kind, const std::vector<Output>& outputs,
                            Result& result) {
  const nvtx::Range range(nvtx::Name::kRespond, call.number());
  const absl::Time start = absl::Now();
  v1::Execution execution;
  execution.set_request_id(call.request_id());
  execution.set_backend(std::string(backend_.name()));
  execution.set_device(result.device);
  for (std::string_view variant : result.variants) execution.add_variants(std::string(variant));
  v1::StageTimes& times = *execution.mutable_stage_times();
  times.set_convert(result.seconds.convert);
  times.set_admission(result.seconds.admission);
  times.set_queue(result.seconds.queue);
  times.set_stage(result.seconds.stage);
  times.set_device(result.seconds.device);

  std::vector<std::string> headers;
  if (kind == RequestKind::kRun) {
    std::vector<NamedOutput> named;
    for (const Output& output : outputs) named.push_back(output.named);
    headers = RunResponseHeaders(named, execution);
  } else {
    headers.push_back(ResponseHeader(outputs.front().named.spec, execution));
  }
  const std::size_t region_bytes = outputs.back().offset + outputs.back().named.spec.bytes;
  const grpc::Slice region =
      region_bytes > 0 ? SliceOver(std::move(result.output), region_bytes) : grpc::Slice();
  std::vector<grpc::Slice> slices;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    slices.emplace_back(headers[i]);
    const std::size_t begin = outputs[i].offset, bytes = outputs[i].named.spec.bytes;
    if (bytes > 0) slices.push_back(region.sub(begin, begin + bytes));
  }
  metrics_.CountSuccess(kind, SecondsSince(call.received()));
  call.Respond(grpc::ByteBuffer(slices.data(), slices.size()));
  // The call may be gone.
  metrics_.stage(kind, Stage::kRespond).Observe(SecondsSince(start));
}

void KernelService::RespondError(UnaryCall& call, RequestKind kind, const absl::Status& status) {
  const nvtx::Range range(nvtx::Name::kRespond, call.number());
  const auto code = static_cast<grpc::StatusCode>(status.code());
  if (absl::IsInternal(status)) {
    Log("error", "request failed",
        {{"request_id", call.request_id()},
         {"op", std::string(Name(kind))},
         {"code", std::string(CodeName(code))},
         {"reason", std::string(status.message())}});
  }
  metrics_.CountRequest(kind, CodeName(code), SecondsSince(call.received()));
  call.RespondError(status);
}

}  // namespace warpline
