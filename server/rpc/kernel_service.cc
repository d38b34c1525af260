#include "server/rpc/kernel_service.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"
#include "server/observe/crash_report.h"
#include "server/observe/log.h"
#include "server/observe/nvtx.h"
#include "server/rpc/code_name.h"
#include "server/rpc/copy_plan.h"
#include "server/rpc/owning_slice.h"
#include "server/rpc/received_payloads.h"
#include "server/rpc/region_slices.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/tensor_requests.h"
#include "server/rpc/unary_call.h"

namespace warpline {
namespace {

// Requests that wait to be compiled or are compiled now. One takes some ten microseconds, a program of 64
// steps a millisecond.
constexpr int kMaxCompiling = 256;

// Jobs that take so long on a device leave our threads alone meanwhile.
constexpr double kAwaitedSeconds = 1e-3;

// The entry of the initial metadata that has the ids of uploads, as a message Uploads.
constexpr char kUploadsKey[] = "x-warpline-uploads-bin";

// The resources that a result holds until it has been sent. The slot is destroyed first. Code that waits for
// all tickets to be back may then destroy the pool.
struct HeldResult {
  Ticket ticket;
  StagingSlot slot;
};

RequestSource SourceOf(const Plan& whole) {
  if (whole.Streams()) return RequestSource::kStream;
  const MemoryPlan& plan = whole.memory;
  const bool region = plan.Has(Area::kShared), resident = plan.Has(Area::kResident);
  if (!region && !resident) return RequestSource::kInline;
  if ((region && resident) || plan.Has(Area::kInput) || plan.Has(Area::kOutput)) return RequestSource::kMixed;
  return region ? RequestSource::kRegion : RequestSource::kResident;
}

// The same of a plan that leaves its outputs on the device, to be copied to where they are to go.
RequestSource SourceOfCounted(const Plan& plan) {
  bool in_region = false, resident = false, in_message = false;
  for (int i = 0; i < plan.program.num_inputs; ++i) {
    const Area area = plan.memory.tensors[static_cast<std::size_t>(i)].area;
    (area == Area::kShared ? in_region : area == Area::kResident ? resident : in_message) = true;
  }
  for (const PlannedOutput& output : plan.outputs) {
    (output.slice.has_value() ? in_region : output.is_resident() ? resident : in_message) = true;
  }
  if (int{in_region} + int{resident} + int{in_message} > 1) return RequestSource::kMixed;
  return in_region ? RequestSource::kRegion : resident ? RequestSource::kResident : RequestSource::kInline;
}

// The uploads of a plan, by number.
std::vector<TensorSpec> UploadsOf(const Plan& plan) {
  std::vector<TensorSpec> uploads(plan.num_uploads);
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    const std::size_t number = plan.inputs[i].upload;
    if (number != PlannedInput::kNone) uploads[number] = plan.program.tensors[i];
  }
  return uploads;
}

std::int64_t HostBytesOf(const Plan& plan) { return static_cast<std::int64_t>(plan.HostBytes()); }

}  // namespace

// Shared by the call's cancellation, which may come at any time, and by whoever submits its job, perhaps
// later and on another thread. A call that waits for its uploads ends either by its cancellation or by their
// last byte, whichever comes first.
struct KernelService::Submission {
  explicit Submission(Scheduler& scheduler) : scheduler(scheduler) {}

  // A call may have two jobs, one after the other. The second one may be submitted before the thread that has
  // submitted the first one comes here.
  void SubmittedAs(Scheduler::JobId job) {
    MutexLock lock(&mutex);
    id = std::max(id.value_or(0), job);
    if (why.has_value()) scheduler.Cancel(*id, *why);
  }
  void Cancel(const absl::Status& reason) {
    std::function<void(const absl::Status&)> waiting;
    {
      MutexLock lock(&mutex);
      why = reason;
      if (id.has_value()) scheduler.Cancel(*id, reason);
      waiting = std::exchange(on_cancel, nullptr);
    }
    if (waiting) waiting(reason);
  }
  // From now on `if_cancelled` is called once the call is cancelled, unless Arrived comes before. Nothing is
  // called, and nothing may follow, if one of them has come already: that one is returned.
  enum class Wait { kWaits, kCancelled, kArrived };
  Wait BeginWait(std::function<void(const absl::Status&)> if_cancelled) {
    MutexLock lock(&mutex);
    if (why.has_value()) return Wait::kCancelled;
    if (arrived) return Wait::kArrived;
    on_cancel = std::move(if_cancelled);
    return Wait::kWaits;
  }
  // All uploads have come. Returns whether this ends the wait.
  bool Arrived() {
    MutexLock lock(&mutex);
    arrived = true;
    return std::exchange(on_cancel, nullptr) != nullptr;
  }

  Scheduler& scheduler;
  Mutex mutex;
  std::optional<Scheduler::JobId> id ABSL_GUARDED_BY(mutex);
  std::optional<absl::Status> why ABSL_GUARDED_BY(mutex);  // of the cancellation, if there was one
  std::function<void(const absl::Status&)> on_cancel ABSL_GUARDED_BY(mutex);  // while it waits for uploads
  bool arrived ABSL_GUARDED_BY(mutex) = false;
};

KernelService::KernelService(const Limits& limits, const Engine& engine, Metrics& metrics)
    : engine_(engine),
      compiler_(limits, {engine.backend, engine.admission, engine.pool}),
      metrics_(metrics),
      codecs_(KernelCodecs()),
      copy_in_site_(metrics, "stage_in"),
      compiling_({.total = kMaxCompiling, .what = "requests of new kinds that wait to be checked"}) {
  metrics.HostCopyBytes("respond");  // a copy that is not made: results are sent from where they lie
}

void KernelService::Handle(UnaryCall& call, const Codec& codec) {
  const RunningRequest running(call.request_id());
  absl::StatusOr<Scanned> scanned = Scan(call, codec);
  if (!scanned.ok()) return RespondError(call, codec, nullptr, scanned.status());
  auto submission = std::make_shared<Submission>(engine_.scheduler);
  call.OnCancel([submission, deadline = call.deadline()] {
    submission->Cancel(MonotonicClock::now() >= deadline
                           ? absl::DeadlineExceededError("the deadline passed while the request was queued")
                           : absl::CancelledError("the client cancelled while the request was queued"));
  });
  if (const PlanPtr plan = engine_.plans.Find(scanned->key, call.received()); plan != nullptr) {
    return Submit(call, codec, *std::move(scanned), plan, submission);
  }
  const Claimant& claimant = call.caller().claimant;
  absl::StatusOr<FairBudget::Part> place = compiling_.Take(claimant);
  if (!place.ok()) {
    metrics_.CountRejection("plans");
    return RespondError(call, codec, nullptr, place.status());
  }
  engine_.compilers.Post(claimant, [this, &call, &codec, submission, scanned = *std::move(scanned),
                                    place = *std::move(place)]() mutable {
    const RunningRequest running(call.request_id());
    absl::StatusOr<PlanPtr> plan = compiler_.Compile(codec, scanned.message, scanned.references);
    place.Return();
    if (!plan.ok()) return RespondError(call, codec, nullptr, plan.status());
    engine_.plans.Insert(scanned.key, *plan, call.caller().claimant.share, call.received());
    Submit(call, codec, std::move(scanned), *plan, submission);
  });
}

absl::StatusOr<KernelService::Scanned> KernelService::Scan(UnaryCall& call, const Codec& codec) const {
  const nvtx::Range range(nvtx::Name::kConvert, call.number());
  Scanned scanned;
  scanned.slices = call.TakeRequest();
  ASSIGN_OR_RETURN(scanned.message, ScanMessage(codec.schema, SpansOf(scanned.slices.slices())));
  for (const Reference& reference : scanned.message.references) {
    if (static_cast<ReferenceKind>(reference.field) == ReferenceKind::kRegion) {
      scanned.references.emplace_back(TensorSpec());
      scanned.referred.emplace_back();
      continue;
    }
    absl::StatusOr<TensorStore::Reading> reading = engine_.tensors.Read(call.caller().owner, reference.text);
    // An id that a later one replaces does no harm, so whether this is an error is seen later.
    scanned.references.push_back(reading.ok() ? absl::StatusOr<TensorSpec>(reading->info.spec)
                                              : reading.status());
    scanned.referred.push_back(reading.ok() ? std::move(reading->memory) : Buffer());
  }
  scanned.key = PlanKey(codec.kind, scanned.message, scanned.references);
  return scanned;
}

absl::Status KernelService::Bind(const Plan& plan, const Scanned& scanned, OwnerId owner, Job& job) const {
  job.bindings = MakeBindings(plan.memory);
  if (plan.memory.Has(Area::kShared)) {
    RETURN_IF_ERROR(BindSlices(plan, scanned.message, owner, engine_.regions, job.bindings));
  }
  for (Binding& binding : job.bindings) {
    if (binding.tensor >= plan.program.num_inputs || binding.staged.area != Area::kResident) continue;
    const std::size_t reference = plan.inputs[static_cast<std::size_t>(binding.tensor)].reference;
    if (reference == PlannedInput::kNone) continue;  // an upload, which gets its memory later
    binding.memory = scanned.referred[reference];
  }
  return absl::OkStatus();
}

void KernelService::ChooseDevice(const Caller& caller, const Plan& plan, Job& job) const {
  const DeviceBytes operands =
      OperandBytes(job.bindings, plan.program.num_inputs, engine_.backend.devices().size());
  const bool has_operands =
      std::any_of(operands.begin(), operands.end(), [](std::size_t n) { return n > 0; });
  if (!has_operands && job.sink_bytes == 0) return;
  job.device = operands.size() == 1 ? 0 : engine_.tensors.DeviceFor(caller, job.sink_bytes, operands);
  job.peer_bytes = FindPeerOperands(job.bindings, plan.program.num_inputs, *job.device).bytes;
}

absl::Status KernelService::FindSinks(const Plan& plan, const Caller& caller, int device,
                                      Bindings& bindings) const {
  for (Binding& binding : bindings) {
    if (binding.tensor < plan.program.num_inputs || binding.staged.area != Area::kResident) continue;
    if (binding.memory.bytes().data() != nullptr) continue;  // a streamed result
    const std::size_t bytes = plan.program.tensors[static_cast<std::size_t>(binding.tensor)].bytes;
    ASSIGN_OR_RETURN(binding.memory, engine_.tensors.Allocate(caller, device, bytes));
  }
  return absl::OkStatus();
}

std::vector<v1::Tensor> KernelService::Place(const Plan& plan, const Aftermath& after, OwnerId owner,
                                             Result& result) const {
  std::vector<v1::Tensor> placed;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    if (plan.outputs[i].is_inline()) continue;
    const ResultSink& sink = after.sinks[placed.size()];
    v1::Tensor& tensor = placed.emplace_back();
    if (plan.outputs[i].slice.has_value()) {
      *tensor.mutable_region() = sink.slice;
      continue;
    }
    const int index = plan.program.outputs[i];
    const auto binding = std::find_if(result.bindings.begin(), result.bindings.end(),
                                      [&](const Binding& candidate) { return candidate.tensor == index; });
    const TensorSpec& spec = plan.outputs[i].spec;
    const absl::Duration lease = plan.outputs[i].streamed ? engine_.send_timeout : sink.lease;
    const TensorStore::Info info =
        plan.outputs[i].streamed
            ? engine_.tensors.AddResult(owner, spec, lease, std::move(binding->memory), after.streamed)
            : engine_.tensors.Add(owner, spec, lease, std::move(binding->memory));
    tensor.mutable_resident()->set_id(info.id);
    tensor.mutable_resident()->set_ttl_seconds(absl::ToDoubleSeconds(lease));
  }
  return placed;
}

void KernelService::FreeTensors(OwnerId owner, const std::vector<std::string>& ids) const {
  if (ids.empty()) return;
  std::vector<Buffer> memory = engine_.tensors.DropEach(owner, ids);
  // The answer does not wait for more.
  if (!FreesAtOnce(memory)) engine_.workers.Post([memory = std::move(memory)] {});
}

void KernelService::Submit(UnaryCall& call, const Codec& codec, Scanned scanned, const PlanPtr& plan,
                           const std::shared_ptr<Submission>& submission) {
  Job job;
  job.seconds.plan = SecondsSince(call.received());
  metrics_.phase(plan->kind, Phase::kPlan).Observe(job.seconds.plan);
  if (const absl::Status bound = Bind(*plan, scanned, call.caller().owner, job); !bound.ok()) {
    return RespondError(call, codec, plan.get(), bound);
  }
  scanned.referred.clear();  // from here on only the job uses them
  absl::StatusOr<ResultSinks> sinks = SinksOf(*plan, scanned.message, engine_.tensors);
  if (!sinks.ok()) return RespondError(call, codec, plan.get(), sinks.status());
  const MonotonicTime asked = MonotonicClock::now();
  call.ReturnProvisionalTicket();
  absl::StatusOr<Ticket> ticket = engine_.admission.Admit(HostBytesOf(*plan), call.caller(),
                                                          static_cast<std::int64_t>(plan->tensor_bytes));
  if (!ticket.ok()) return RespondError(call, codec, plan.get(), ticket.status());
  job.ticket = *std::move(ticket);
  job.seconds.admission = SecondsSince(asked);
  metrics_.phase(plan->kind, Phase::kAdmission).Observe(job.seconds.admission);

  job.plan = plan;
  job.scalars = ScalarsOf(plan->scalars, scanned.message.scalars);
  SetSinks(call, plan, job);
  if (const absl::Status fits = engine_.tensors.CheckEverFits(call.caller().owner, job.sink_bytes);
      !fits.ok()) {
    return RespondError(call, codec, plan.get(), fits);
  }
  ChooseDevice(call.caller(), *plan, job);
  job.copy_in = [this, payloads = ReceivedPayloads(std::move(scanned.slices), scanned.message.payloads,
                                                   *plan)](std::span<std::byte> area, int part, int parts) {
    payloads.CopyPart(area, part, parts, copy_in_site_);
  };
  SetCaller(call, job);
  Aftermath after{*std::move(sinks), std::move(scanned.message.extras), nullptr};
  std::shared_ptr<const ScannedMessage> message;  // of a program whose job is not the last
  if (plan->IsCounted()) message = std::make_shared<const ScannedMessage>(std::move(scanned.message));
  const Claimant& claimant = call.caller().claimant;
  if (plan->Streams()) {
    call.AwaitDevice();  // and the client
    // Memory that the device does not have at hand takes milliseconds.
    return engine_.compilers.Post(
        claimant, [this, &call, &codec, plan, submission, message, after = std::move(after),
                   job = std::make_shared<Job>(std::move(job))]() mutable {
          SubmitStreamed(call, codec, plan, std::move(after), message, std::move(*job), submission);
        });
  }
  SetDone(call, codec, plan, std::move(after), message, submission, job);
  if (plan->device_seconds >= kAwaitedSeconds || plan->IsCounted()) call.AwaitDevice();
  submission->SubmittedAs(engine_.scheduler.Submit(std::move(job)));
}

void KernelService::SetCaller(UnaryCall& call, Job& job) {
  job.caller = call.caller();
  job.crowded = call.crowded();
  job.number = call.number();
  job.request_id = call.request_id();
  job.deadline = call.deadline();
  job.cancelled = &call.cancelled();
}

void KernelService::SetSinks(UnaryCall& call, const PlanPtr& plan, Job& job) {
  bool has_sinks = false;
  for (const Binding& binding : job.bindings) {
    if (binding.tensor < plan->program.num_inputs || binding.staged.area != Area::kResident) continue;
    const auto output =
        std::find(plan->program.outputs.begin(), plan->program.outputs.end(), binding.tensor) -
        plan->program.outputs.begin();
    if (plan->outputs[static_cast<std::size_t>(output)].streamed) continue;
    has_sinks = true;
    job.sink_bytes += plan->program.tensors[static_cast<std::size_t>(binding.tensor)].bytes;
  }
  if (!has_sinks) return;
  job.find_sinks = [this, plan, caller = call.caller()](int device, Bindings& bindings) {
    return FindSinks(*plan, caller, device, bindings);
  };
}

void KernelService::SetDone(UnaryCall& call, const Codec& codec, const PlanPtr& plan, Aftermath after,
                            const std::shared_ptr<const ScannedMessage>& message,
                            const std::shared_ptr<Submission>& submission, Job& job) {
  if (!plan->IsCounted()) {
    job.done = [this, &call, &codec, plan, after = std::move(after)](Result result) {
      Complete(call, codec, *plan, after, std::move(result));
    };
    return;
  }
  job.done = [this, &call, &codec, plan, after = std::move(after), message,
              submission](Result result) mutable {
    if (!result.status.ok()) return Complete(call, codec, *plan, after, std::move(result));
    // Whoever calls this may hold up others.
    engine_.compilers.Post(
        call.caller().claimant, [this, &call, &codec, plan, message, submission, after = std::move(after),
                                 held = std::make_shared<Result>(std::move(result))]() mutable {
          SubmitCopies(call, codec, plan, std::move(after), *message, std::move(*held), submission);
        });
  };
}

std::optional<Buffer> KernelService::SmallerSink(const Caller& caller, const Buffer& computed,
                                                 std::size_t bytes) const {
  // Copying costs less than memory that nobody uses if at least half of it would be left over.
  if (bytes > computed.bytes().size() / 2) return std::nullopt;
  absl::StatusOr<Buffer> smaller = engine_.tensors.Allocate(caller, computed.place().device, bytes);
  if (!smaller.ok()) return std::nullopt;
  return *std::move(smaller);
}

void KernelService::SubmitCopies(UnaryCall& call, const Codec& codec, const PlanPtr& counted, Aftermath after,
                                 const ScannedMessage& message, Result result,
                                 const std::shared_ptr<Submission>& submission) {
  std::vector<std::int64_t> sizes;
  for (const std::size_t place : counted->counts) {
    std::int64_t size = 0;
    if (place != Plan::kNoCount) std::memcpy(&size, result.output.bytes().data() + place, sizeof(size));
    sizes.push_back(size);
  }
  const std::vector<TensorSpec> found = FoundSpecs(*counted, sizes);
  std::vector<Buffer> computed;
  std::vector<std::optional<Buffer>> sinks(found.size());
  std::vector<bool> kept(found.size());
  for (std::size_t i = 0; i < counted->outputs.size(); ++i) {
    const int tensor = counted->program.outputs[i];
    const auto binding = std::find_if(result.bindings.begin(), result.bindings.end(),
                                      [&](const Binding& candidate) { return candidate.tensor == tensor; });
    computed.push_back(binding->memory.First(found[i].bytes));
    if (!counted->outputs[i].is_resident()) continue;
    sinks[i] = SmallerSink(call.caller(), binding->memory, found[i].bytes);
    kept[i] = !sinks[i].has_value() || found[i].bytes == 0;
    if (kept[i] && sinks[i].has_value()) computed[i] = *std::move(sinks[i]);  // nothing to copy
  }
  after.seconds = result.seconds;
  after.source = SourceOfCounted(*counted);
  ObserveStages(counted->kind, result.seconds);
  if (counted->reports) after.variants = VariantsByPart(counted->program, result.variants);
  Ticket ticket = std::move(result.ticket);
  result = Result();  // and its memory
  const auto made = [&]() -> absl::StatusOr<PlanPtr> {
    ASSIGN_OR_RETURN(Plan plan, CopyPlan(*counted, found, kept, compiler_.limits()));
    return compiler_.Complete(codec, std::move(plan));
  }();
  if (!made.ok()) return RespondError(call, codec, counted.get(), made.status());
  const PlanPtr& plan = *made;
  Job job;
  job.bindings = MakeBindings(plan->memory);
  if (plan->memory.Has(Area::kShared)) {
    const absl::Status bound = BindSlices(*plan, message, call.caller().owner, engine_.regions, job.bindings);
    if (!bound.ok()) return RespondError(call, codec, plan.get(), bound);
  }
  for (Binding& binding : job.bindings) {
    if (binding.tensor < plan->program.num_inputs) {
      binding.memory = computed[static_cast<std::size_t>(binding.tensor)];
      job.device = binding.memory.place().device;
      continue;
    }
    const auto output =
        std::find(plan->program.outputs.begin(), plan->program.outputs.end(), binding.tensor) -
        plan->program.outputs.begin();
    if (auto& sink = sinks[static_cast<std::size_t>(output)]; sink.has_value()) {
      binding.memory = *std::move(sink);
    }
  }
  if (plan->program.steps.empty()) {  // every output is kept
    Result whole;
    whole.bindings = std::move(job.bindings);
    whole.device = *job.device;
    whole.ticket = std::move(ticket);
    return Complete(call, codec, *plan, after, std::move(whole));
  }
  job.ticket = std::move(ticket);
  job.plan = plan;
  SetSinks(call, plan, job);
  job.copy_in = [](std::span<std::byte>, int, int) {};
  SetCaller(call, job);
  SetDone(call, codec, plan, std::move(after), nullptr, submission, job);
  submission->SubmittedAs(engine_.scheduler.Submit(std::move(job)));
}

void KernelService::SubmitStreamed(UnaryCall& call, const Codec& codec, const PlanPtr& plan, Aftermath after,
                                   const std::shared_ptr<const ScannedMessage>& message, Job job,
                                   const std::shared_ptr<Submission>& submission) {
  const std::vector<TensorSpec> uploads = UploadsOf(*plan);
  std::vector<std::size_t> bytes;
  for (const TensorSpec& upload : uploads) bytes.push_back(upload.bytes);
  for (const PlannedOutput& output : plan->outputs) {
    if (output.streamed) bytes.push_back(output.spec.bytes);
  }
  absl::StatusOr<StreamedCalls::Opened> opened = engine_.streamed.Open(call.caller(), job.device, bytes);
  if (!opened.ok()) {
    if (absl::IsResourceExhausted(opened.status())) metrics_.CountRejection("uploads");
    return RespondError(call, codec, plan.get(), opened.status());
  }
  job.device = opened->device;
  job.peer_bytes = FindPeerOperands(job.bindings, plan->program.num_inputs, opened->device).bytes;
  std::size_t next = uploads.size();  // of the results' memory, in the order of the outputs
  for (std::size_t i = 0; i < plan->outputs.size(); ++i) {
    if (!plan->outputs[i].streamed) continue;
    const auto binding =
        std::find_if(job.bindings.begin(), job.bindings.end(),
                     [&](const Binding& candidate) { return candidate.tensor == plan->program.outputs[i]; });
    binding->memory = opened->memory[next++];
  }
  for (Binding& binding : job.bindings) {
    if (binding.tensor >= plan->program.num_inputs) continue;
    const std::size_t number = plan->inputs[static_cast<std::size_t>(binding.tensor)].upload;
    if (number != PlannedInput::kNone) binding.memory = opened->memory[number];
  }
  std::size_t apart = 0;
  for (std::size_t i = uploads.size(); i < bytes.size(); ++i) apart += bytes[i];
  call.CountResponseApart(apart);
  const std::shared_ptr<StreamedCall> streamed = opened->call;
  after.streamed = streamed;
  SetDone(call, codec, plan, std::move(after), message, submission, job);
  if (uploads.empty()) {
    v1::Uploads accepted;
    accepted.set_channels(static_cast<std::int32_t>(streamed->windows()));
    call.AddMetadata(kUploadsKey, accepted.SerializeAsString());
    return submission->SubmittedAs(engine_.scheduler.Submit(std::move(job)));
  }
  opened->memory.resize(uploads.size());
  AwaitUploads(call, codec, plan, std::move(opened->memory), streamed, std::move(job), submission);
}

void KernelService::AwaitUploads(UnaryCall& call, const Codec& codec, const PlanPtr& plan,
                                 std::vector<Buffer> memory, const std::shared_ptr<StreamedCall>& streamed,
                                 Job job, const std::shared_ptr<Submission>& submission) {
  const std::vector<TensorSpec> uploads = UploadsOf(*plan);
  const OwnerId owner = call.caller().owner;
  v1::Uploads accepted;
  accepted.set_channels(static_cast<std::int32_t>(streamed->windows()));
  auto ids = std::make_shared<std::vector<std::string>>();
  std::size_t incomplete = 0;
  for (std::size_t i = 0; i < uploads.size(); ++i) {
    ids->push_back(engine_.tensors.AddUpload(owner, uploads[i], std::move(memory[i]), streamed));
    accepted.add_ids(ids->back());
    if (uploads[i].bytes > 0) ++incomplete;
  }
  const auto held = std::make_shared<Job>(std::move(job));
  // Whoever ends the wait calls one of these, and nobody calls another.
  const auto end_wait = [this, &call, owner, ids, streamed] {
    streamed->StopWaiting();
    call.CountRequestApart(streamed->arrived());
    engine_.tensors.RemoveUploads(owner, *ids);
    call.StopWaiting();
  };
  const auto go_on = [this, submission, end_wait, held] {
    end_wait();
    submission->SubmittedAs(engine_.scheduler.Submit(std::move(*held)));
  };
  const auto give_up = [this, &call, &codec, plan, end_wait, held](const absl::Status& why) {
    end_wait();
    // Giving gigabytes back to the system takes a while.
    engine_.workers.Post([job = std::move(*held)] {});
    RespondError(call, codec, plan.get(), why);
  };
  if (incomplete > 0) {
    streamed->Await(
        incomplete,
        {.progress = [&call] { call.Touch(); },
         .complete =
             [this, submission, go_on, claimant = call.caller().claimant] {
               engine_.compilers.Post(claimant, [submission, go_on] {
                 if (submission->Arrived()) go_on();
               });
             },
         .give_up = [submission] { submission->Cancel(absl::UnavailableError("the server is draining")); }});
  } else {
    static_cast<void>(submission->Arrived());
  }
  call.SendMetadataAndWait(
      kUploadsKey, accepted.SerializeAsString(), [submission, least = streamed->min_progress()] {
        submission->Cancel(absl::CancelledError(absl::StrCat(
            "less than ", least, " bytes of the request's uploads came within the send timeout")));
      });
  switch (submission->BeginWait(give_up)) {
    case Submission::Wait::kWaits:
      return;
    case Submission::Wait::kArrived:
      return go_on();
    case Submission::Wait::kCancelled:
      return give_up(absl::CancelledError("the client cancelled"));
  }
}

void KernelService::Complete(UnaryCall& call, const Codec& codec, const Plan& plan, const Aftermath& after,
                             Result result) {
  if (result.status.ok()) {  // is anybody still waiting for it?
    if (MonotonicClock::now() >= call.deadline()) {
      result.status = absl::DeadlineExceededError("the deadline passed while the request was running");
    } else if (call.cancelled()) {
      result.status = absl::CancelledError("the client cancelled while the request was running");
    }
  }
  if (result.status.ok()) {
    ObserveStages(plan.kind, result.seconds);
    Respond(call, codec, plan, after, result);
  } else {
    metrics_.phase(plan.kind, Phase::kQueue).Observe(result.seconds.queue);
    result.bindings.clear();  // before the answer, so that a withdrawal is confirmed at once
    RespondError(call, codec, &plan, result.status);
  }
}

void KernelService::ObserveStages(RequestKind kind, const PhaseSeconds& seconds) {
  metrics_.phase(kind, Phase::kQueue).Observe(seconds.queue);
  metrics_.phase(kind, Phase::kCopyIn).Observe(seconds.copy_in);
  metrics_.phase(kind, Phase::kDevice).Observe(seconds.device);
}

void KernelService::Respond(UnaryCall& call, const Codec& codec, const Plan& plan, const Aftermath& after,
                            Result& result) {
  const nvtx::Range range(nvtx::Name::kRespond, call.number());
  const MonotonicTime start = MonotonicClock::now();
  v1::Execution execution;
  execution.set_request_id(call.request_id());
  execution.set_backend(std::string(engine_.backend.name()));
  execution.set_device(result.device);
  if (!after.variants.empty()) {
    for (const std::string& names : after.variants) execution.add_variants(names);
  } else if (plan.reports) {
    for (std::string& names : VariantsByPart(plan.program, result.variants)) {
      execution.add_variants(std::move(names));
    }
  }
  v1::StageTimes& times = *execution.mutable_stage_times();
  times.set_convert(after.seconds.plan + result.seconds.plan);
  times.set_admission(after.seconds.admission + result.seconds.admission);
  times.set_queue(after.seconds.queue + result.seconds.queue);
  times.set_stage(after.seconds.copy_in + result.seconds.copy_in);
  times.set_device(after.seconds.device + result.seconds.device);

  const std::vector<v1::Tensor> placed = Place(plan, after, call.caller().owner, result);
  result.bindings.clear();  // whoever has the answer may count on the operands' memory
  const bool fetches = std::any_of(plan.outputs.begin(), plan.outputs.end(),
                                   [](const PlannedOutput& output) { return output.streamed; });
  if (after.streamed != nullptr && !fetches) after.streamed->EndTransfers();
  FreeTensors(call.caller().owner, after.freed);
  if (!placed.empty()) {
    call.OnNotSent([this, owner = call.caller().owner, placed] {
      for (const v1::Tensor& tensor : placed) {
        if (tensor.has_resident()) static_cast<void>(engine_.tensors.Drop(owner, tensor.resident().id()));
      }
    });
  }
  const std::vector<std::string> headers =
      codec.encode({.outputs = plan.outputs, .placed = placed, .execution = execution});
  const std::span<std::byte> outputs = result.output.bytes();
  const grpc::Slice inline_outputs =
      outputs.empty() ? grpc::Slice()
                      : SliceOver(outputs, HeldResult{std::move(result.ticket), std::move(result.output)});
  std::vector<grpc::Slice> slices;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    slices.emplace_back(headers[i]);
    const std::size_t begin = plan.outputs[i].offset, bytes = plan.outputs[i].spec.bytes;
    if (bytes > 0 && plan.outputs[i].is_inline()) slices.push_back(inline_outputs.sub(begin, begin + bytes));
  }
  metrics_.CountSuccess(plan.kind, after.source.value_or(SourceOf(plan)), SecondsSince(call.received()));
  CountForOwner(call, "OK");
  call.Respond(grpc::ByteBuffer(slices.data(), slices.size()));
  // The call may be gone.
  metrics_.phase(plan.kind, Phase::kRespond).Observe(SecondsSince(start));
}

void KernelService::RespondError(UnaryCall& call, const Codec& codec, const Plan* plan,
                                 const absl::Status& status) {
  const nvtx::Range range(nvtx::Name::kRespond, call.number());
  const auto code = static_cast<grpc::StatusCode>(status.code());
  const RequestKind kind = plan == nullptr ? codec.kind : plan->kind;
  if (absl::IsInternal(status)) {
    Log("error", "request failed",
        {{"request_id", call.request_id()},
         {"client", engine_.name_of != nullptr ? engine_.name_of(call.caller().owner) : call.Client()},
         {"op", std::string(Name(kind))},
         {"code", std::string(CodeName(code))},
         {"reason", std::string(status.message())}});
  }
  const RequestSource source = plan == nullptr ? RequestSource::kInline : SourceOf(*plan);
  metrics_.CountRequest(kind, source, CodeName(code), SecondsSince(call.received()));
  CountForOwner(call, CodeName(code));
  call.RespondError(status);
}

void KernelService::CountForOwner(const UnaryCall& call, std::string_view code) const {
  if (engine_.owner_metrics != nullptr) engine_.owner_metrics->CountRequest(call.caller().owner, code);
}

}  // namespace warpline
