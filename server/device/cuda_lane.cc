#include "server/device/cuda_lane.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"
#include "server/observe/nvtx.h"

namespace warpline {

using gpu::ToStatus;

namespace {

// Returns the bytes that are copied to the device and from the device.
std::pair<std::size_t, std::size_t> CopiedBytes(const StagedProgram& staged) {
  std::pair<std::size_t, std::size_t> bytes(staged.input.size(), staged.output.size());
  for (const Binding& binding : staged.bindings) {
    if (binding.staged.area != Area::kShared) continue;
    (binding.tensor < staged.program->num_inputs ? bytes.first : bytes.second) +=
        binding.memory.bytes().size();
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaLane>> CudaLane::Create(CudaDevice& device,
                                                           const CudaBackendOptions& options,
                                                           Metrics& metrics) {
  RETURN_IF_ERROR(ToStatus(cudaSetDevice(device.cuda_ordinal), "choosing a device"));
  std::unique_ptr<CudaLane> lane(new CudaLane(device, options, metrics));
  ASSIGN_OR_RETURN(lane->stream_, device.partition ? device.partition->CreateStream() : gpu::CreateStream());
  ASSIGN_OR_RETURN(lane->urgent_stream_, gpu::CreateUrgentStream());
  ASSIGN_OR_RETURN(lane->arena_, gpu::AllocateDevice(options.lane_bytes));
  metrics.Allocations("device").Add();
  metrics.DeviceMemoryBytes(device.info.ordinal, "arena").Add(static_cast<double>(options.lane_bytes));
  ASSIGN_OR_RETURN(lane->done_event_, gpu::CreateEvent());
  ASSIGN_OR_RETURN(BadIndexBox bad_index, BadIndexBox::Create(device.uses_host_pointers));
  lane->bad_index_.emplace(std::move(bad_index));
  if (device.uses_host_pointers) {
    ASSIGN_OR_RETURN(gpu::StreamFlag flag, gpu::StreamFlag::Create());
    lane->done_flag_.emplace(std::move(flag));
    if (options.timing_sample > 0) {
      ASSIGN_OR_RETURN(gpu::Gate gate, gpu::Gate::Create());
      lane->gate_.emplace(std::move(gate));
    }
  }
  return lane;
}

CudaLane::CudaLane(CudaDevice& device, const CudaBackendOptions& options, Metrics& metrics)
    : device_(device),
      options_(options),
      metrics_(metrics),
      h2d_(metrics.Transfer(device.info.ordinal, "h2d")),
      d2h_(metrics.Transfer(device.info.ordinal, "d2h")),
      peer_bytes_(metrics.PeerCopyBytes(device.info.ordinal)),
      series_(metrics, device.info.ordinal),
      cache_({.entries = options.graph_cache_entries, .bytes = options.graph_cache_bytes},
             metrics.graph_cache, metrics.DeviceMemoryBytes(device.info.ordinal, "graphs")) {}

CudaLane::~CudaLane() {
  cudaSetDevice(device_.cuda_ordinal);
  if (stream_ != nullptr) cudaStreamSynchronize(stream_.get());
  if (urgent_stream_ != nullptr) cudaStreamSynchronize(urgent_stream_.get());
  if (arena_ != nullptr) {
    metrics_.DeviceMemoryBytes(device_.info.ordinal, "arena").Add(-static_cast<double>(options_.lane_bytes));
  }
}

bool CudaLane::LacksGraph(const CudaProgram& program, Path path) const {
  if (!MayBeGraph(program, path)) return false;
  // A graph on one of the two streams is enough: the other stream is used only briefly, beside a long job.
  for (const bool urgent : {false, true}) {
    const std::uint64_t key = KeyOf(program, path, urgent);
    if (cache_.Peek(key) != nullptr || no_graphs_.contains(key)) return false;
  }
  return true;
}

bool CudaLane::LaunchesAtOnce(const Program&, const MemoryPlan& memory, const DeviceProgram* compiled) const {
  const auto& program = static_cast<const CudaProgram&>(*compiled);
  const CudaPlan& plan = PlanFor(program);
  const int launches = LaunchesOf(program).load(std::memory_order_relaxed);
  // At its first launch a program may make a library load a module.
  if (launches == 0) return !memory.Has(Area::kResident) && plan.among_others == Path::kMapped;
  if (launches < kLaunchesBeforeGraph) return true;
  // A program that always has the device to itself needs no graph for the other path.
  return !LacksGraph(program, plan.alone) || !LacksGraph(program, plan.among_others);
}

absl::Status CudaLane::EnsureTimingEvents(const Run& run) {
  const std::size_t count = run.path == Path::kBlocks ? CutPipeline::TimingEventsOf(*run.plan->cutting)
                                                      : TimingEvents::CountFor(run.plan->steps.size());
  while (timing_.events.size() < count) {
    ASSIGN_OR_RETURN(gpu::Event event, gpu::CreateTimedEvent());
    timing_.events.push_back(std::move(event));
    metrics_.Allocations("event").Add();
  }
  return absl::OkStatus();
}

const StepScalars* CudaLane::ScalarsOf(const StagedProgram& staged) const {
  const int count = ScalarCount(staged.program->steps.front().problem);
  if (count == 0) return nullptr;
  const std::byte* const sent = staged.input.data() + staged.plan->scalars[0];
  constexpr StepScalars kDefaults;
  // Every CTA of a product reads its scalars. Reading them over the bus took 7 us, longer than a small
  // product.
  return count == 1 && std::memcmp(sent, &kDefaults, sizeof(kDefaults)) == 0
             ? static_cast<const StepScalars*>(device_.default_scalars.get())
             : reinterpret_cast<const StepScalars*>(sent);
}

absl::Status CudaLane::RunOnSlots(const StagedProgram& staged, const StepScalars* scalars, Run& run) {
  const nvtx::Range range(nvtx::Name::kLaunchOnSlots);
  // Such a program has one step (see ChoosePath), and so no intermediates.
  AddressTable addresses(*staged.plan);
  addresses.PlaceInputs(*staged.plan, staged.bindings, staged.input.data());
  addresses.PlaceOutputs(staged.bindings, staged.output.data());
  addresses.PlaceResident(staged.bindings);
  addresses.PlaceShared(staged.bindings);
  addresses.scalars[0] = scalars;
  addresses.workspace = arena();
  return EnqueueSteps(*staged.program, addresses,
                      {.plan = *run.plan,
                       .context = device_.context,
                       .stream = StreamFor(staged),
                       .timing = run.timed ? &timing_ : nullptr,
                       .bad_index = bad_index_->report()},
                      run.variants);
}

absl::Status CudaLane::RunOverCopies(const StagedProgram& staged, Run& run) {
  const nvtx::Range range(nvtx::Name::kLaunchCalls);
  const TimingEvents* const timing = run.timed ? &timing_ : nullptr;
  const std::span<std::byte> block = run.block.bytes().empty() ? arena() : run.block.bytes();
  if (const std::size_t needed = BlockLayout(*staged.plan).workspace; needed > block.size()) {
    return absl::InternalError(
        absl::StrCat("a program whose tensors take ", needed, " bytes was given ", block.size()));
  }
  const DeviceImage image(staged, block);
  cudaStream_t stream = StreamFor(staged);
  RETURN_IF_ERROR(RecordTime(timing, TimingEvents::kBeforeCopyIn, stream));
  RETURN_IF_ERROR(CopyIn(staged, image, stream));
  RETURN_IF_ERROR(EnqueueSteps(*staged.program, image.addresses,
                               {.plan = *run.plan,
                                .context = device_.context,
                                .stream = stream,
                                .timing = timing,
                                .bad_index = bad_index_->report()},
                               run.variants));
  RETURN_IF_ERROR(CopyOut(staged, image, stream));
  return RecordTime(timing, TimingEvents::AfterCopyOut(staged.program->steps.size()), stream);
}

absl::Status CudaLane::RunInPieces(const StagedProgram& staged, Run& run) {
  const nvtx::Range range(nvtx::Name::kLaunchInPieces);
  // Such a program has one input and one output (see CutProgram). Each may lie in a shared region.
  std::span<const std::byte> input = staged.input;
  std::span<std::byte> output = staged.output;
  for (const Binding& binding : staged.bindings) {
    if (binding.staged.area != Area::kShared) continue;
    if (binding.tensor < staged.program->num_inputs) {
      input = binding.memory.bytes();
    } else {
      output = binding.memory.bytes();
    }
  }
  ASSIGN_OR_RETURN(const std::string_view variant,
                   device_.cuts->Enqueue({.plan = *run.plan,
                                          .input = input,
                                          .output = output,
                                          .arena = run.block.bytes().empty() ? arena() : run.block.bytes(),
                                          .context = device_.context,
                                          .kernels = StreamFor(staged),
                                          .part = staged.part,
                                          .parts = staged.parts,
                                          .pipelined = run.started_alone,
                                          .timing = run.timed ? &timing_ : nullptr}));
  run.variants.assign(1, variant);
  return absl::OkStatus();
}

bool CudaLane::IsTimeToTime() {
  if (options_.timing_sample == 0) return false;
  const MonotonicTime now = MonotonicClock::now();
  if (++untimed_ < options_.timing_sample && timed_at_.has_value() &&
      now - *timed_at_ < absl::ToChronoNanoseconds(options_.timing_period))
    return false;
  untimed_ = 0;
  timed_at_ = now;
  return true;
}

absl::Status CudaLane::FetchPeers(StagedProgram& staged, Bindings& bindings, Run& run) {
  const PeerOperands peers =
      FindPeerOperands(staged.bindings, staged.program->num_inputs, device_.info.ordinal);
  if (peers.copies.empty()) return absl::OkStatus();
  if (peers.block_bytes > 0) {
    ASSIGN_OR_RETURN(run.peers, TakeBlock(peers.block_bytes));
  }
  bindings.assign(staged.bindings.begin(), staged.bindings.end());
  for (const PeerOperands::Copy& copy : peers.copies) {
    Buffer& memory = bindings[copy.binding].memory;
    if (copy.first != copy.binding) {
      memory = bindings[copy.first].memory;
      continue;
    }
    std::span<std::byte> here = bindings[copy.binding].copy.bytes();
    if (here.empty()) here = run.peers.bytes().subspan(copy.offset, memory.bytes().size());
    const int from = device_.cuda_ordinals[static_cast<std::size_t>(memory.place().device)];
    // The operand is complete, so there is no need to wait for work on its own device.
    RETURN_IF_ERROR(ToStatus(cudaMemcpyPeerAsync(here.data(), device_.cuda_ordinal, memory.bytes().data(),
                                                 from, here.size(), StreamFor(staged)),
                             "copying an operand from another device"));
    peer_bytes_.Add(static_cast<double>(here.size()));
    memory = Buffer(here, {.kind = Place::Kind::kDevice, .device = device_.info.ordinal}, nullptr);
  }
  staged.bindings = bindings;
  return absl::OkStatus();
}

absl::Status CudaLane::Start(const StagedProgram& given, LaunchDone& done) {
  StagedProgram staged = given;
  RETURN_IF_ERROR(ToStatus(cudaSetDevice(device_.cuda_ordinal), "choosing a device"));
  Run run;
  run.program = static_cast<const CudaProgram*>(staged.compiled);
  run.plan = &PlanFor(*run.program);
  run.order = device_.launched.fetch_add(1) + 1;
  run.started_alone = device_.running.fetch_add(1) == 0;
  run.path = run.started_alone ? run.plan->alone : run.plan->among_others;
  if (run.path == Path::kMapped && !SharedSlicesAreAligned(staged.bindings)) run.path = Path::kCopied;
  if (staged.parts > 1) run.path = Path::kBlocks;
  run.brief = staged.wait_briefly && run.path == Path::kMapped;
  run.memory = MemoryOf(*staged.plan, run.path);
  run.prepared = LaunchesOf(*run.program).load(std::memory_order_relaxed) == 0;
  // At the first launch libraries load their modules, which takes longer than a gate can stay closed.
  run.timed = !run.prepared && staged.parts == 1 && IsTimeToTime();
  Bindings with_copies;
  absl::Status status = FetchPeers(staged, with_copies, run);
  if (status.ok()) status = Enqueue(staged, run);
  if (status.ok() && LaunchesOf(*run.program).load(std::memory_order_relaxed) <= kLaunchesBeforeGraph) {
    LaunchesOf(*run.program).fetch_add(1, std::memory_order_relaxed);
  }
  if (status.ok() && run.brief) {
    if (EndsBriefly()) {
      if (run.timed) RecordTimes(*staged.program, run);
      LaunchReport report{bad_index_->ErrorOf(*staged.program), std::move(run.variants),
                          run.prepared || !WasAlone(run)};
      run.peers = Buffer();
      device_.running.fetch_sub(1);
      done(std::move(report));
      return absl::OkStatus();
    }
    // The completion thread also detects errors, but it can wait only for events.
    status = RecordEnd(StreamFor(staged));
  }
  if (!status.ok()) {
    Drain(run.path, StreamFor(staged));
    // Steps before the one that failed may have met a bad index.
    bad_index_->Discard();
    device_.running.fetch_sub(1);
    return status;
  }
  device_.completion->Watch(done_event_.get(), [this, program = staged.program, run = std::move(run),
                                                done = std::move(done)](absl::Status status) mutable {
    if (run.timed && status.ok()) RecordTimes(*program, run);
    if (status.ok()) {
      status = bad_index_->ErrorOf(*program);
    } else {
      bad_index_->Discard();
    }
    run.block = run.peers = Buffer();  // released before `done`: the next job may count on this memory
    LaunchReport report{std::move(status), std::move(run.variants), run.prepared || !WasAlone(run)};
    device_.running.fetch_sub(1);
    done(std::move(report));  // the lane may run the next program from here on
  });
  return absl::OkStatus();
}

std::size_t CudaLane::PoolBytesOf(const Run& run) const {
  // A program in pieces gets as many bytes as the whole program, which is at least what the pieces need. The
  // scheduler has counted a block of this size, and blocks of other sizes would fragment the pool.
  const bool pooled_pieces =
      run.path == Path::kBlocks && run.plan->cutting->arena_bytes > options_.lane_bytes;
  return run.path == Path::kCopied || pooled_pieces ? run.program->device_bytes : 0;
}

absl::Status CudaLane::RunByCalls(const StagedProgram& staged, Run& run) {
  return run.path == Path::kMapped ? RunOnSlots(staged, ScalarsOf(staged), run) : RunOverCopies(staged, run);
}

KernelMemory CudaLane::MemoryOf(const MemoryPlan& plan, Path path) {
  if (path == Path::kBlocks) return KernelMemory::kPieces;
  return path == Path::kMapped && plan.Travels() ? KernelMemory::kHost : KernelMemory::kDevice;
}

absl::Status CudaLane::Enqueue(const StagedProgram& staged, Run& run) {
  // A gate holds timed work until all of it is enqueued, if it is enqueued call by call. Pieces need no gate:
  // their kernels wait for copies.
  const bool by_calls = run.path != Path::kBlocks;
  if (by_calls && !gate_.has_value()) run.timed = false;
  if (!run.timed) return EnqueueWork(staged, run);
  RETURN_IF_ERROR(EnsureTimingEvents(run));
  std::tie(run.input_bytes, run.output_bytes) = CopiedBytes(staged);
  if (!by_calls) return EnqueueWork(staged, run);
  RETURN_IF_ERROR(gate_->Enqueue(StreamFor(staged), run.plan->steps.size()));
  absl::Status enqueued = EnqueueWork(staged, run);
  gate_->Open();
  return enqueued;
}

absl::StatusOr<Buffer> CudaLane::TakeBlock(std::size_t bytes) {
  absl::StatusOr<Buffer> block = device_.pool->Take(bytes);
  pool_in_pieces_ = absl::IsResourceExhausted(block.status());
  return block;
}

absl::Status CudaLane::EnqueueWork(const StagedProgram& staged, Run& run) {
  if (const std::size_t bytes = PoolBytesOf(run); bytes > 0) {
    ASSIGN_OR_RETURN(run.block, TakeBlock(bytes));
  }
  cudaStream_t last = StreamFor(staged);
  Entry* const known = GraphFor(staged, run);
  RETURN_IF_ERROR(bad_index_->Prepare(last));
  if (run.path == Path::kBlocks) {
    RETURN_IF_ERROR(RunInPieces(staged, run));
    if (run.started_alone) last = device_.cuts->last();
  } else if (known != nullptr) {
    const nvtx::Range range(nvtx::Name::kLaunchGraph);
    RETURN_IF_ERROR(known->graph.Launch(BasesOf(staged, run.path), last));
    run.variants = known->variants;
  } else {
    RETURN_IF_ERROR(RunByCalls(staged, run));
  }
  return run.brief ? done_flag_->Enqueue(last) : RecordEnd(last);
}

absl::Status CudaLane::RecordEnd(cudaStream_t last) {
  return ToStatus(cudaEventRecord(done_event_.get(), last), "recording an event");
}

void CudaLane::Drain(Path path, cudaStream_t stream) {
  if (path == Path::kBlocks) device_.cuts->Drain();
  // This call may be the first one that sees a lost context.
  device_.completion->ReportError(
      ToStatus(cudaStreamSynchronize(stream), "waiting for the rest of a launch that failed"));
}

bool CudaLane::EndsBriefly() {
  // Twice the time from the launch to the end of a small job's kernel.
  constexpr auto kLongest = std::chrono::microseconds(20);
  const MonotonicTime start = MonotonicClock::now();
  do {
    if (done_flag_->Reached()) return true;
  } while (MonotonicClock::now() - start < kLongest);
  return false;
}

void CudaLane::Launch(const StagedProgram& staged, LaunchDone done) {
  absl::Status status = Start(staged, done);
  if (status.ok()) return;
  device_.completion->ReportError(status);
  // The shortage is temporary: another process may use memory of this device, or the pool may be fragmented.
  if (absl::IsResourceExhausted(status)) status = WithRetryAfter(std::move(status), absl::Seconds(1));
  done({.status = std::move(status),
        .variants = {},
        .shared = false,
        .pool_in_pieces = std::exchange(pool_in_pieces_, false)});
}

}  // namespace warpline
