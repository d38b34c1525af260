#include "server/device/cuda_lane.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"
#include "server/observe/nvtx.h"

namespace warpline {

using gpu::ToStatus;

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

bool CudaLane::LaunchesAtOnce(const Program& program, const MemoryPlan& plan, std::string_view signature,
                              std::size_t device_bytes) const {
  if (const Entry* known = cache_.Peek(signature)) {
    return known->calls + 1 != kCallsBeforeGraph;
  }
  // A library may have a module to load first.
  if (plan.Has(Area::kResident)) return false;
  const PathQuestion question{.can_map = device_.uses_host_pointers, .fits_lane = device_bytes == 0};
  return ChoosePath(program, plan, question, options_.paths) == Path::kMapped;
}

absl::Status CudaLane::EnsureTimingEvents(std::size_t count) {
  while (timing_.events.size() < count) {
    ASSIGN_OR_RETURN(gpu::Event event, gpu::CreateTimedEvent());
    timing_.events.push_back(std::move(event));
    metrics_.Allocations("event").Add();
  }
  return absl::OkStatus();
}

absl::StatusOr<CudaLane::Entry> CudaLane::Build(const StagedProgram& staged) {
  const Program& program = *staged.program;
  Entry entry;
  entry.pool_bytes = staged.device_bytes;
  const std::size_t most = std::max(options_.lane_bytes, entry.pool_bytes);
  if (const std::size_t regions = BlockLayout(*staged.plan).workspace; regions > most) {
    return absl::InternalError(
        absl::StrCat("a program whose tensors take ", regions, " bytes was given ", most));
  }
  if (!staged.plan->Has(Area::kResident) && staged.plan->TravellingBytes() >= options_.paths.cut_bytes) {
    entry.cutting = CutProgram(program, *staged.plan, most, options_.cutting);
  }
  PathQuestion question{.can_map = device_.uses_host_pointers,
                        .can_cut = entry.cutting.has_value(),
                        .fits_lane = entry.pool_bytes == 0,
                        .can_capture = !device_.partition};
  entry.among_others = ChoosePath(program, *staged.plan, question, options_.paths);
  question.alone = true;
  entry.alone = ChoosePath(program, *staged.plan, question, options_.paths);
  if (entry.alone != Path::kBlocks && entry.among_others != Path::kBlocks) entry.cutting.reset();
  if (entry.alone == Path::kGraph || entry.among_others == Path::kGraph) {
    RETURN_IF_ERROR(CaptureGraphs(staged, entry));
  }
  if (options_.timing_sample > 0) {
    std::size_t events = TimingEvents::CountFor(program.steps.size());
    if (entry.cutting.has_value()) events = std::max(events, CutPipeline::TimingEventsOf(*entry.cutting));
    RETURN_IF_ERROR(EnsureTimingEvents(events));
  }
  entry.input_bytes = staged.input.size();
  entry.output_bytes = staged.output.size();
  for (const Binding& binding : staged.bindings) {
    if (binding.staged.area != Area::kShared) continue;
    (binding.tensor < program.num_inputs ? entry.input_bytes : entry.output_bytes) +=
        binding.memory.bytes().size();
  }
  return entry;
}

absl::Status CudaLane::CaptureGraphs(const StagedProgram& staged, Entry& entry) {
  const nvtx::Range range(nvtx::Name::kBuildGraph);
  const DeviceImage image(staged, arena());
  StepLaunch launch = {.context = device_.context,
                       .choices = device_.kernel_choices,
                       .stream = stream_.get(),
                       .bad_index = bad_index_->report()};
  ASSIGN_OR_RETURN(entry.plain, CudaGraph::Capture(staged, image, launch, entry.variants));
  metrics_.graph_cache.instantiations.Add();
  if (options_.timing_sample == 0) return absl::OkStatus();
  RETURN_IF_ERROR(EnsureTimingEvents(TimingEvents::CountFor(staged.program->steps.size())));
  launch.timing = &timing_;
  ASSIGN_OR_RETURN(entry.timed, CudaGraph::Capture(staged, image, launch, entry.variants));
  metrics_.graph_cache.instantiations.Add();
  return absl::OkStatus();
}

void CudaLane::Describe(const Program& program, KernelMemory memory, Entry& entry) {
  const bool is_first = entry.problems.empty();
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Problem& problem = program.steps[i].problem;
    // All configurations of a variant in one series.
    const std::string_view variant = entry.variants[i].substr(0, entry.variants[i].find(':'));
    const Op op = OpOf(problem);
    const DType dtype = DTypeOf(problem);
    const int device = device_.info.ordinal;
    entry.series[static_cast<std::size_t>(memory)].push_back(
        metrics_.Kernel(op, variant, dtype, memory, device));
    if (is_first) entry.problems.push_back(problem);
    if (memory != KernelMemory::kDevice) continue;
    const bool has_roof = device_.roofline.ShortestSeconds(problem) > 0;
    entry.roof_ratios.push_back(has_roof ? metrics_.RoofRatio(op, variant, dtype, device) : Histogram());
  }
}

const StepScalars* CudaLane::ScalarsOf(const StagedProgram& staged) const {
  const int count = ScalarCount(staged.program->steps.front().problem);
  if (count == 0) return nullptr;
  const std::byte* const sent = staged.input.data() + staged.plan->scalars[0];
  constexpr StepScalars kDefaults;
  // Every CTA of a product reads its scalars. Over the bus that took 7 us, longer than a small product.
  return count == 1 && std::memcmp(sent, &kDefaults, sizeof(kDefaults)) == 0
             ? static_cast<const StepScalars*>(device_.default_scalars.get())
             : reinterpret_cast<const StepScalars*>(sent);
}

absl::Status CudaLane::RunOnSlots(const StagedProgram& staged, const StepScalars* scalars, Entry& entry,
                                  bool timed) {
  const nvtx::Range range(nvtx::Name::kLaunchOnSlots);
  // It has one step (ChoosePath), and so no intermediates.
  AddressTable addresses(*staged.plan);
  addresses.PlaceInputs(*staged.plan, staged.bindings, staged.input.data());
  addresses.PlaceOutputs(staged.bindings, staged.output.data());
  addresses.PlaceResident(staged.bindings);
  addresses.PlaceShared(staged.bindings);
  addresses.scalars[0] = scalars;
  addresses.workspace = arena();
  StepLaunch launch = {.context = device_.context,
                       .choices = device_.kernel_choices,
                       .stream = StreamFor(staged, Path::kMapped),
                       .timing = timed ? &timing_ : nullptr,
                       .bad_index = bad_index_->report()};
  return EnqueueSteps(*staged.program, addresses, launch, entry.variants);
}

absl::Status CudaLane::RunCalls(const StagedProgram& staged, Entry& entry, const Run& run) {
  const nvtx::Range range(nvtx::Name::kLaunchCalls);
  const TimingEvents* const timing = run.timed ? &timing_ : nullptr;
  const DeviceImage image(staged, run.block.bytes().empty() ? arena() : run.block.bytes());
  cudaStream_t stream = StreamFor(staged, Path::kCalls);
  RETURN_IF_ERROR(RecordTime(timing, TimingEvents::kBeforeCopyIn, stream));
  RETURN_IF_ERROR(CopyIn(staged, image, stream));
  RETURN_IF_ERROR(EnqueueSteps(*staged.program, image.addresses,
                               {.context = device_.context,
                                .choices = device_.kernel_choices,
                                .stream = stream,
                                .timing = timing,
                                .bad_index = bad_index_->report()},
                               entry.variants));
  RETURN_IF_ERROR(CopyOut(staged, image, stream));
  return RecordTime(timing, TimingEvents::AfterCopyOut(staged.program->steps.size()), stream);
}

absl::Status CudaLane::RunInPieces(const StagedProgram& staged, Entry& entry, const Run& run) {
  const nvtx::Range range(nvtx::Name::kLaunchInPieces);
  // It has one input and one output (CutProgram), each of which may lie in a shared region.
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
                   device_.cuts->Enqueue({.cutting = *entry.cutting,
                                          .input = input,
                                          .output = output,
                                          .arena = run.block.bytes().empty() ? arena() : run.block.bytes(),
                                          .context = device_.context,
                                          .choices = device_.kernel_choices,
                                          .kernels = stream_.get(),
                                          .timing = run.timed ? &timing_ : nullptr}));
  if (entry.variants.empty()) entry.variants.push_back(variant);
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
  if (peers.bytes == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(run.peers, TakeBlock(peers.bytes));
  bindings.assign(staged.bindings.begin(), staged.bindings.end());
  for (const PeerOperands::Copy& copy : peers.copies) {
    Buffer& memory = bindings[copy.binding].memory;
    const std::span<std::byte> here = run.peers.bytes().subspan(copy.offset, memory.bytes().size());
    const int from = device_.cuda_ordinals[static_cast<std::size_t>(memory.place().device)];
    if (copy.is_first) {
      // The operand is complete, so nothing has to be waited for on its own device.
      RETURN_IF_ERROR(ToStatus(cudaMemcpyPeerAsync(here.data(), device_.cuda_ordinal, memory.bytes().data(),
                                                   from, here.size(), StreamFor(staged, run.path)),
                               "copying an operand from another device"));
      peer_bytes_.Add(static_cast<double>(here.size()));
    }
    memory = Buffer(here, run.peers.place(), nullptr);
  }
  staged.bindings = bindings;
  return absl::OkStatus();
}

absl::Status CudaLane::Start(const StagedProgram& given, LaunchDone& done) {
  StagedProgram staged = given;
  RETURN_IF_ERROR(ToStatus(cudaSetDevice(device_.cuda_ordinal), "choosing a device"));
  Entry* entry = cache_.Find(staged.signature);
  const bool known = entry != nullptr;
  if (entry == nullptr) {
    ASSIGN_OR_RETURN(Entry built, Build(staged));
    const std::size_t bytes = built.GraphBytes();
    entry = cache_.Insert(staged.signature, std::move(built), bytes, staged.owner);
  }
  Run run;
  run.prepared = !known;
  run.timed = IsTimeToTime();
  run.order = device_.launched.fetch_add(1) + 1;
  run.started_alone = device_.running.fetch_add(1) == 0;
  run.path = run.started_alone ? entry->alone : entry->among_others;
  if (run.path == Path::kMapped && !SharedSlicesAreAligned(staged.bindings)) run.path = Path::kCalls;
  if (run.path == Path::kGraph && staged.urgent && staged.beside_long) run.path = Path::kCalls;
  run.brief = staged.wait_briefly && run.path == Path::kMapped;
  run.memory = MemoryOf(*staged.plan, run.path);
  Bindings with_copies;
  absl::Status status = FetchPeers(staged, with_copies, run);
  if (status.ok()) {
    entry = MakeRepointed(staged, entry, run);
    status = Enqueue(staged, *entry, run);
  }
  if (status.ok() && entry->series[static_cast<std::size_t>(run.memory)].empty()) {
    Describe(*staged.program, run.memory, *entry);
  }
  if (status.ok() && run.brief) {
    if (EndsBriefly()) {
      if (run.timed) RecordTimes(*entry, run);
      LaunchReport report{bad_index_->ErrorOf(*staged.program), entry->variants,
                          run.prepared || !WasAlone(run)};
      run.peers = Buffer();
      device_.running.fetch_sub(1);
      done(std::move(report));
      return absl::OkStatus();
    }
    // The completion thread, which learns of errors too, knows events only.
    status = RecordEnd(StreamFor(staged, run.path));
  }
  if (!status.ok()) {
    Drain(run.path, StreamFor(staged, run.path));
    // Steps before the one that failed may have met a bad index.
    bad_index_->Discard();
    device_.running.fetch_sub(1);
    return status;
  }
  device_.completion->Watch(done_event_.get(), [this, entry, program = staged.program, run = std::move(run),
                                                done = std::move(done)](absl::Status status) mutable {
    if (run.timed && status.ok()) RecordTimes(*entry, run);
    if (status.ok()) {
      status = bad_index_->ErrorOf(*program);
    } else {
      bad_index_->Discard();
    }
    run.block = run.peers = Buffer();  // the next job may count on them once this one is done
    LaunchReport report{std::move(status), entry->variants, run.prepared || !WasAlone(run)};
    device_.running.fetch_sub(1);
    done(std::move(report));  // the lane may run the next program from here on
  });
  return absl::OkStatus();
}

std::size_t CudaLane::PoolBytesOf(const Entry& entry, Path path) const {
  // Pieces take as much as the whole program, which is at least what they need: blocks of any other size than
  // the one that the scheduler has counted would leave fragments behind.
  const bool pooled_pieces = path == Path::kBlocks && entry.cutting->arena_bytes > options_.lane_bytes;
  return path == Path::kCalls || pooled_pieces ? entry.pool_bytes : 0;
}

absl::Status CudaLane::RunByCalls(const StagedProgram& staged, Entry& entry, const Run& run) {
  return run.path == Path::kMapped ? RunOnSlots(staged, ScalarsOf(staged), entry, run.timed)
                                   : RunCalls(staged, entry, run);
}

KernelMemory CudaLane::MemoryOf(const MemoryPlan& plan, Path path) {
  if (path == Path::kBlocks) return KernelMemory::kPieces;
  return path == Path::kMapped && plan.Travels() ? KernelMemory::kHost : KernelMemory::kDevice;
}

absl::Status CudaLane::Enqueue(const StagedProgram& staged, Entry& entry, Run& run) {
  // Work that is enqueued call by call waits until all of it is there. A graph is there at once, and the
  // kernels of pieces wait for copies.
  const bool by_calls = run.path == Path::kMapped || run.path == Path::kCalls;
  if (run.timed && by_calls && !gate_.has_value()) run.timed = false;
  if (!run.timed || !by_calls) return EnqueueWork(staged, entry, run);
  RETURN_IF_ERROR(gate_->Enqueue(StreamFor(staged, run.path)));
  absl::Status enqueued = EnqueueWork(staged, entry, run);
  gate_->Open();
  return enqueued;
}

absl::StatusOr<Buffer> CudaLane::TakeBlock(std::size_t bytes) {
  absl::StatusOr<Buffer> block = device_.pool->Take(bytes);
  pool_in_pieces_ = absl::IsResourceExhausted(block.status());
  return block;
}

absl::Status CudaLane::EnqueueWork(const StagedProgram& staged, Entry& entry, Run& run) {
  if (const std::size_t bytes = PoolBytesOf(entry, run.path); bytes > 0) {
    ASSIGN_OR_RETURN(run.block, TakeBlock(bytes));
  }
  cudaStream_t last = StreamFor(staged, run.path);
  RETURN_IF_ERROR(bad_index_->Prepare(last));
  switch (run.path) {
    case Path::kGraph:
      RETURN_IF_ERROR((run.timed ? *entry.timed : *entry.plain).Launch(staged, last));
      break;
    case Path::kMapped:
    case Path::kCalls:
      RETURN_IF_ERROR(FitsRepointed(staged, entry, run)
                          ? entry.repointed->Launch(BasesOf(staged, run.path), last)
                          : RunByCalls(staged, entry, run));
      break;
    case Path::kBlocks:
      RETURN_IF_ERROR(RunInPieces(staged, entry, run));
      last = device_.cuts->last();
      break;
  }
  return run.brief ? done_flag_->Enqueue(last) : RecordEnd(last);
}

absl::Status CudaLane::RecordEnd(cudaStream_t last) {
  return ToStatus(cudaEventRecord(done_event_.get(), last), "recording an event");
}

void CudaLane::Drain(Path path, cudaStream_t stream) {
  if (path == Path::kBlocks) device_.cuts->Drain();
  // This may be the first to hear of a lost context.
  device_.completion->ReportError(
      ToStatus(cudaStreamSynchronize(stream), "waiting for the rest of a launch that failed"));
}

bool CudaLane::EndsBriefly() {
  // Twice what a kernel of a small job takes from its launch to its end.
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
  // Another process may have taken the memory of this device, or the pool may be in pieces: that passes.
  if (absl::IsResourceExhausted(status)) status = WithRetryAfter(std::move(status), absl::Seconds(1));
  done({.status = std::move(status),
        .variants = {},
        .shared = false,
        .pool_in_pieces = std::exchange(pool_in_pieces_, false)});
}

}  // namespace warpline
