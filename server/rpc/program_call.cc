#include "server/rpc/program_call.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"
#include "server/observe/crash_report.h"
#include "server/observe/log.h"
#include "server/observe/nvtx.h"
#include "server/rpc/call_memory.h"
#include "server/rpc/code_name.h"
#include "server/rpc/owning_slice.h"
#include "server/rpc/received_payloads.h"
#include "server/rpc/result_copies.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/tensor_requests.h"
#include "server/rpc/unary_call.h"

namespace warpline {
namespace {

// Jobs with at least this estimated time keep no thread of ours busy while they run.
constexpr double kAwaitedSeconds = 1e-3;

// The entry of the initial metadata with the ids of uploads: a serialized message Uploads.
constexpr char kUploadsKey[] = "x-warpline-uploads-bin";

}  // namespace

void ProgramCall::Start(CallContext& context, UnaryCall& call, const Codec& codec) {
  std::make_shared<ProgramCall>(context, call, codec)->Receive();
}

ProgramCall::ProgramCall(CallContext& context, UnaryCall& call, const Codec& codec)
    : context_(context),
      engine_(context.engine),
      call_(call),
      codec_(codec),
      cancellation_(engine_.scheduler),
      kind_(codec.kind) {}

void ProgramCall::Receive() {
  const RunningRequest running(call_.request_id());
  if (const absl::Status scanned = Scan(); !scanned.ok()) return Fail(scanned);
  call_.OnCancel([self = shared_from_this(), deadline = call_.deadline()] {
    self->cancellation_.Cancel(
        MonotonicClock::now() >= deadline
            ? absl::DeadlineExceededError("the deadline passed while the request was queued")
            : absl::CancelledError("the client cancelled while the request was queued"));
  });
  plan_ = engine_.plans.Find(key_, call_.received());
  if (plan_ != nullptr && !context_.compiler.HasTimeFor(*plan_)) plan_ = nullptr;
  if (plan_ != nullptr) return Admit();
  const Claimant& claimant = call_.caller().claimant;
  absl::StatusOr<FairBudget::Part> place = context_.compiling.Take(claimant);
  if (!place.ok()) {
    context_.metrics.CountRejection("plans");
    return Fail(place.status());
  }
  compiling_ = *std::move(place);
  engine_.compilers.Post(claimant, [self = shared_from_this()] { self->Compile(); });
}

absl::Status ProgramCall::Scan() {
  const nvtx::Range range(nvtx::Name::kConvert, call_.number());
  slices_ = call_.TakeRequest();
  ASSIGN_OR_RETURN(message_, ScanMessage(codec_.schema, SpansOf(slices_.slices())));
  for (const Reference& reference : message_.references) {
    if (static_cast<ReferenceKind>(reference.field) == ReferenceKind::kRegion) {
      references_.emplace_back(TensorSpec());
      referred_.emplace_back();
      continue;
    }
    absl::StatusOr<TensorStore::Reading> reading = engine_.tensors.Read(call_.caller().owner, reference.text);
    // An id may be replaced by a later one, so whether this is an error is decided later.
    references_.push_back(reading.ok() ? absl::StatusOr<TensorSpec>(reading->info.spec) : reading.status());
    referred_.push_back(reading.ok() ? std::move(reading->memory) : Buffer());
  }
  key_ = PlanKey(codec_.kind, message_, references_);
  return absl::OkStatus();
}

void ProgramCall::Compile() {
  const RunningRequest running(call_.request_id());
  absl::StatusOr<PlanPtr> plan = context_.compiler.Compile(codec_, message_, references_);
  compiling_.Return();
  if (!plan.ok()) {
    kind_ = KindOf(codec_, message_);
    return Fail(plan.status());
  }
  plan_ = *std::move(plan);
  engine_.plans.Insert(key_, plan_, call_.caller().claimant.share, call_.received());
  Admit();
}

void ProgramCall::Admit() {
  kind_ = plan_->kind;
  source_ = SourceOf(*plan_);
  Job job;
  job.seconds.plan = SecondsSince(call_.received());
  context_.metrics.phase(kind_, Phase::kPlan).Observe(job.seconds.plan);
  if (const absl::Status bound = Bind(job); !bound.ok()) return Fail(bound);
  const MonotonicTime asked = MonotonicClock::now();
  call_.ReturnProvisionalTicket();
  absl::StatusOr<Ticket> ticket =
      engine_.admission.Admit(static_cast<std::int64_t>(plan_->HostBytes()), call_.caller(),
                              static_cast<std::int64_t>(plan_->tensor_bytes));
  if (!ticket.ok()) return Fail(ticket.status());
  job.ticket = *std::move(ticket);
  job.seconds.admission = SecondsSince(asked);
  context_.metrics.phase(kind_, Phase::kAdmission).Observe(job.seconds.admission);
  FindSinksFor(plan_, call_.caller(), engine_.tensors, job);
  const absl::Status fits = engine_.tensors.CheckEverFits(call_.caller().owner, job.sink_bytes);
  if (!fits.ok()) return Fail(fits);
  const int num_inputs = plan_->program.num_inputs;
  JobPlacement placement(Placing(), call_.caller(), job, *plan_);
  if (!plan_->Streams() && placement.AppliesAtOnce(job, num_inputs)) {
    placement.Apply(job, num_inputs);
    return Queue(std::move(job));
  }
  if (plan_->Streams()) call_.AwaitDevice();  // waits for the client too
  // Allocating memory that is not ready on the device takes milliseconds.
  engine_.compilers.Post(call_.caller().claimant, [self = shared_from_this(), placement, num_inputs,
                                                   job = std::make_shared<Job>(std::move(job))]() mutable {
    if (self->plan_->Streams()) return self->TakeStreams(placement.device(), std::move(*job));
    placement.Apply(*job, num_inputs);
    self->Queue(std::move(*job));
  });
}

JobPlacement::Parts ProgramCall::Placing() const {
  return {engine_.backend, engine_.tensors, engine_.replicas, engine_.scheduler.load()};
}

// Moves the parts of the message that the job needs into the job.
absl::Status ProgramCall::Bind(Job& job) {
  RETURN_IF_ERROR(BindOperands(*plan_, message_, referred_, call_.caller().owner, engine_.regions, job));
  referred_.clear();  // from here on only the job uses them
  ASSIGN_OR_RETURN(sinks_, SinksOf(*plan_, message_, engine_.tensors));
  job.scalars = ScalarsOf(plan_->scalars, message_.scalars);
  job.copy_in = [&site = context_.copy_in_site,
                 payloads = ReceivedPayloads(std::move(slices_), message_.payloads, *plan_)](
                    std::span<std::byte> area, int part, int parts) {
    payloads.CopyPart(area, part, parts, site);
  };
  // A call may wait for a long time, so memory is released. Only a second plan needs the message again.
  if (!plan_->IsCounted()) message_ = {.extras = std::move(message_.extras)};
  references_ = {};
  key_ = {};
  return absl::OkStatus();
}

void ProgramCall::TakeStreams(std::optional<int> device, Job job) {
  absl::StatusOr<StreamedCalls::Opened> opened =
      engine_.streamed.Open(call_.caller(), device, StreamedBytes(*plan_));
  if (!opened.ok()) {
    if (absl::IsResourceExhausted(opened.status())) context_.metrics.CountRejection("uploads");
    return Fail(opened.status());
  }
  streamed_ = std::move(opened->call);
  job.device = opened->device;
  call_.CountResponseApart(BindStreams(*plan_, opened->memory, job.bindings));
  if (plan_->num_uploads == 0) {
    v1::Uploads accepted;
    accepted.set_channels(static_cast<std::int32_t>(streamed_->windows()));
    call_.AddMetadata(kUploadsKey, accepted.SerializeAsString());
    return Queue(std::move(job));
  }
  opened->memory.resize(plan_->num_uploads);
  AwaitUploads(std::move(opened->memory), std::move(job));
}

void ProgramCall::AwaitUploads(std::vector<Buffer> memory, Job job) {
  const std::vector<TensorSpec> uploads = UploadsOf(*plan_);
  const OwnerId owner = call_.caller().owner;
  const std::shared_ptr<StreamedCall> streamed = streamed_;
  v1::Uploads accepted;
  accepted.set_channels(static_cast<std::int32_t>(streamed->windows()));
  std::vector<std::string> ids;
  std::size_t incomplete = 0;
  for (std::size_t i = 0; i < uploads.size(); ++i) {
    ids.push_back(engine_.tensors.AddUpload(owner, uploads[i], std::move(memory[i]), streamed));
    accepted.add_ids(ids.back());
    if (uploads[i].bytes > 0) ++incomplete;
  }
  const auto self = shared_from_this();
  const auto held = std::make_shared<Job>(std::move(job));
  // Whoever ends the wait calls either go_on or give_up, and only once.
  const auto end_wait = [self, owner, ids = std::move(ids), streamed] {
    streamed->StopWaiting();
    self->call_.CountRequestApart(streamed->arrived());
    self->engine_.tensors.RemoveUploads(owner, ids);
    self->call_.StopWaiting();
  };
  const auto go_on = [self, end_wait, held] {
    end_wait();
    self->Queue(std::move(*held));
  };
  const auto give_up = [self, end_wait, held](const absl::Status& why) {
    end_wait();
    // Returning gigabytes to the system takes a while.
    self->engine_.workers.Post([job = std::move(*held)] {});
    self->Fail(why);
  };
  if (incomplete > 0) {
    streamed->Await(
        incomplete,
        {.progress = [self] { self->call_.Touch(); },
         .complete =
             [self, go_on] {
               self->engine_.compilers.Post(self->call_.caller().claimant, [self, go_on] {
                 if (self->cancellation_.Arrived()) go_on();
               });
             },
         .give_up =
             [self] { self->cancellation_.Cancel(absl::UnavailableError("the server is draining")); }});
  } else {
    static_cast<void>(cancellation_.Arrived());
  }
  call_.SendMetadataAndWait(
      kUploadsKey, accepted.SerializeAsString(), [self, least = streamed->min_progress()] {
        self->cancellation_.Cancel(absl::CancelledError(absl::StrCat(
            "less than ", least, " bytes of the request's uploads came within the send timeout")));
      });
  switch (cancellation_.BeginWait(give_up)) {
    case Cancellation::Wait::kWaits:
      return;
    case Cancellation::Wait::kArrived:
      return go_on();
    case Cancellation::Wait::kCancelled:
      return give_up(cancellation_.why());
  }
}

void ProgramCall::Queue(Job job) {
  // Only now that all uploads are here: replicas that are being made are of use to nobody else.
  if (plan_->Streams()) JobPlacement(Placing(), *job.device).Apply(job, plan_->program.num_inputs);
  job.plan = plan_;
  SetCaller(job);
  job.done = [self = shared_from_this()](Result result) { self->Ran(std::move(result)); };
  const bool is_long = plan_->device_seconds >= kAwaitedSeconds || plan_->IsCounted();
  if (is_long && !plan_->Streams()) call_.AwaitDevice();
  cancellation_.SubmittedAs(engine_.scheduler.Submit(std::move(job)));
}

void ProgramCall::SetCaller(Job& job) {
  job.caller = call_.caller();
  job.crowded = call_.crowded();
  job.number = call_.number();
  job.request_id = call_.request_id();
  job.deadline = call_.deadline();
  job.cancelled = &call_.cancelled();
}

void ProgramCall::Ran(Result result) {
  if (!plan_->IsCounted() || !result.status.ok()) return Place(std::move(result));
  // The calling thread may be needed by others.
  engine_.compilers.Post(call_.caller().claimant,
                         [self = shared_from_this(), held = std::make_shared<Result>(std::move(result))] {
                           self->QueueCopies(std::move(*held));
                         });
}

void ProgramCall::QueueCopies(Result result) {
  seconds_ = result.seconds;
  peer_bytes_ = result.peer_bytes;
  Observe(seconds_);
  if (plan_->reports) variants_ = VariantsByPart(plan_->program, result.variants);
  absl::StatusOr<ResultCopies> copies =
      CopyResults(*plan_, std::move(result), message_, call_.caller(), codec_, context_);
  if (!copies.ok()) return Fail(copies.status());
  plan_ = copies->plan;
  Job& job = copies->job;
  if (!copies->any) {
    Result whole;
    whole.bindings = std::move(job.bindings);
    whole.device = *job.device;
    whole.ticket = std::move(job.ticket);
    return Place(std::move(whole));
  }
  job.copy_in = [](std::span<std::byte>, int, int) {};
  FindSinksFor(plan_, call_.caller(), engine_.tensors, job);
  job.plan = plan_;
  SetCaller(job);
  job.done = [self = shared_from_this()](Result copied) { self->Place(std::move(copied)); };
  cancellation_.SubmittedAs(engine_.scheduler.Submit(std::move(job)));
}

void ProgramCall::Fail(const absl::Status& status) {
  const nvtx::Range range(nvtx::Name::kRespond, call_.number());
  const auto code = static_cast<grpc::StatusCode>(status.code());
  if (absl::IsInternal(status)) {
    Log("error", "request failed",
        {{"request_id", call_.request_id()},
         {"client", engine_.name_of != nullptr ? engine_.name_of(call_.caller().owner) : call_.Client()},
         {"op", std::string(Name(kind_))},
         {"code", std::string(CodeName(code))},
         {"reason", std::string(status.message())}});
  }
  context_.metrics.CountRequest(kind_, source_, CodeName(code), SecondsSince(call_.received()));
  CountForOwner(CodeName(code));
  Release();
  call_.RespondError(status);
}

void ProgramCall::Observe(const PhaseSeconds& seconds) const {
  context_.metrics.phase(kind_, Phase::kQueue).Observe(seconds.queue);
  context_.metrics.phase(kind_, Phase::kCopyIn).Observe(seconds.copy_in);
  context_.metrics.phase(kind_, Phase::kDevice).Observe(seconds.device);
}

void ProgramCall::CountForOwner(std::string_view code) const {
  if (engine_.owner_metrics != nullptr) engine_.owner_metrics->CountRequest(call_.caller().owner, code);
}

void ProgramCall::Release() {
  slices_ = MessageSlices();
  message_ = ScannedMessage();
  referred_.clear();
  references_ = {};
  key_ = {};
  sinks_ = {};
  streamed_ = nullptr;
}

}  // namespace warpline
