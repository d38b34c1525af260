#include "server/device/cuda_lane.h"

#include <chrono>
#include <utility>

#include "absl/cleanup/cleanup.h"
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
  ASSIGN_OR_RETURN(lane->stream_, gpu::CreateStream());
  ASSIGN_OR_RETURN(lane->arena_, gpu::AllocateDevice(options.lane_bytes));
  metrics.Allocations("device").Add();
  metrics.DeviceMemoryBytes(device.info.ordinal, "arena").Add(static_cast<double>(options.lane_bytes));
  ASSIGN_OR_RETURN(lane->done_event_, gpu::CreateEvent());
  return lane;
}

CudaLane::CudaLane(CudaDevice& device, const CudaBackendOptions& options, Metrics& metrics)
    : device_(device),
      options_(options),
      metrics_(metrics),
      h2d_(metrics.Transfer(device.info.ordinal, "h2d")),
      d2h_(metrics.Transfer(device.info.ordinal, "d2h")),
      cache_(options.graph_cache_entries, metrics.graph_cache) {}

CudaLane::~CudaLane() {
  cudaSetDevice(device_.cuda_ordinal);
  if (stream_ != nullptr) cudaStreamSynchronize(stream_.get());
  if (arena_ != nullptr) {
    metrics_.DeviceMemoryBytes(device_.info.ordinal, "arena").Add(-static_cast<double>(options_.lane_bytes));
  }
}

bool CudaLane::LaunchesAtOnce(const Program& program, const MemoryPlan& plan,
                              std::string_view signature) const {
  if (cache_.Contains(signature)) return true;
  return device_.uses_host_pointers && RunsOnSlots(program, plan, options_.on_slots_bytes);
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
  if (options_.timing_sample > 0) RETURN_IF_ERROR(EnsureTimingEvents(program.steps.size() + 3));
  if (!device_.uses_host_pointers || !RunsOnSlots(program, *staged.plan, options_.on_slots_bytes)) {
    const nvtx::Range range(nvtx::Name::kBuildGraph);
    ASSIGN_OR_RETURN(entry.plain,
                     CudaGraph::Capture(staged, device_, arena(), stream_.get(), nullptr, entry.variants));
    metrics_.graph_cache.instantiations.Add();
    if (options_.timing_sample > 0) {
      ASSIGN_OR_RETURN(entry.timed,
                       CudaGraph::Capture(staged, device_, arena(), stream_.get(), &timing_, entry.variants));
      metrics_.graph_cache.instantiations.Add();
    }
    entry.input_bytes = staged.input.size();
    entry.output_bytes = staged.output.size();
  }
  return entry;
}

void CudaLane::Describe(const Program& program, Entry& entry) {
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Problem& problem = program.steps[i].problem;
    entry.problems.push_back(problem);
    const auto look_up = [&](auto get) {
      return (metrics_.*get)(OpOf(problem), entry.variants[i], DTypeOf(problem), device_.info.ordinal);
    };
    entry.series.push_back(look_up(&Metrics::Kernel));
    // A kernel that reads host memory is bound by PCIe: it has no place under a roof of device memory.
    const bool has_roof = entry.plain.has_value() && device_.roofline.ShortestSeconds(problem) > 0;
    entry.roof_ratios.push_back(has_roof ? look_up(&Metrics::RoofRatio) : Histogram());
  }
}

absl::Status CudaLane::RunOnSlots(const StagedProgram& staged, Entry& entry, bool timed) {
  const nvtx::Range range(nvtx::Name::kLaunchOnSlots);
  ProgramMemory memory(*staged.plan, arena());
  memory.input = staged.input.data();
  memory.output = staged.output.data();
  return EnqueueSteps(staged, device_, memory, stream_.get(), timed ? &timing_ : nullptr, entry.variants);
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

absl::Status CudaLane::Start(const StagedProgram& staged, LaunchDone& done) {
  RETURN_IF_ERROR(ToStatus(cudaSetDevice(device_.cuda_ordinal), "choosing a device"));
  Entry* entry = cache_.Find(staged.signature);
  if (entry == nullptr) {
    ASSIGN_OR_RETURN(Entry built, Build(staged));
    entry = cache_.Insert(staged.signature, std::move(built));
  }
  const bool timed = IsTimeToTime();
  const std::uint64_t order = device_.launched.fetch_add(1) + 1;
  const bool started_alone = device_.running.fetch_add(1) == 0;
  absl::Cleanup not_running = [this] { device_.running.fetch_sub(1); };
  if (entry->plain.has_value()) {
    CudaGraph& graph = timed ? *entry->timed : *entry->plain;
    RETURN_IF_ERROR(graph.Launch(staged, arena(), stream_.get()));
  } else {
    RETURN_IF_ERROR(RunOnSlots(staged, *entry, timed));
  }
  if (entry->series.empty()) Describe(*staged.program, *entry);
  RETURN_IF_ERROR(ToStatus(cudaEventRecord(done_event_.get(), stream_.get()), "recording an event"));
  if (staged.wait_briefly && EndsBriefly()) {
    if (timed) RecordTimes(*entry, started_alone && device_.launched.load() == order);
    std::move(not_running).Invoke();
    done({absl::OkStatus(), entry->variants});
    return absl::OkStatus();
  }
  std::move(not_running).Cancel();
  device_.completion->Watch(done_event_.get(), [this, entry, timed, order, started_alone,
                                                done = std::move(done)](absl::Status status) mutable {
    if (timed && status.ok()) RecordTimes(*entry, started_alone && device_.launched.load() == order);
    device_.running.fetch_sub(1);
    LaunchReport report{std::move(status), entry->variants};
    done(std::move(report));  // the lane may run the next program from here on
  });
  return absl::OkStatus();
}

bool CudaLane::EndsBriefly() {
  // Twice what a kernel of a small job takes from its launch to its end.
  constexpr auto kLongest = std::chrono::microseconds(20);
  const MonotonicTime start = MonotonicClock::now();
  do {
    const cudaError_t state = cudaEventQuery(done_event_.get());
    if (state == cudaSuccess) return true;
    if (state != cudaErrorNotReady)
      return false;  // the completion thread meets the error too, and reports it
  } while (MonotonicClock::now() - start < kLongest);
  return false;
}

void CudaLane::Launch(const StagedProgram& staged, LaunchDone done) {
  absl::Status status = Start(staged, done);
  if (status.ok()) return;
  // A failed launch may have left work in the stream that still writes to the slots.
  if (stream_ != nullptr) cudaStreamSynchronize(stream_.get());
  device_.completion->ReportError(status);
  // Another process may have taken the memory of this device: that passes.
  if (absl::IsResourceExhausted(status)) status = WithRetryAfter(std::move(status), absl::Seconds(1));
  done({std::move(status), {}});
}

void CudaLane::RecordTimes(Entry& entry, bool alone) {
  const auto seconds = [this](std::size_t from) {
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, timing_.events[from].get(), timing_.events[from + 1].get());
    return milliseconds * 1e-3;
  };
  for (std::size_t i = 0; i < entry.problems.size(); ++i) {
    const double elapsed = seconds(1 + i);
    KernelSeries& series = entry.series[i];
    series.seconds.Observe(elapsed);
    series.bytes.Add(BytesOf(entry.problems[i]));
    series.flops.Add(FlopsOf(entry.problems[i]));
    if (alone && elapsed > 0) {
      entry.roof_ratios[i].Observe(device_.roofline.ShortestSeconds(entry.problems[i]) / elapsed);
    }
  }
  if (!entry.plain.has_value()) return;  // nothing was copied
  h2d_.bytes.Add(static_cast<double>(entry.input_bytes));
  h2d_.seconds.Add(seconds(0));
  d2h_.bytes.Add(static_cast<double>(entry.output_bytes));
  d2h_.seconds.Add(seconds(1 + entry.problems.size()));
  if (options_.on_timeline) {
    const auto since_epoch = [this](std::size_t event) {
      float milliseconds = 0;
      cudaEventElapsedTime(&milliseconds, device_.epoch.get(), timing_.events[event].get());
      return milliseconds * 1e-3;
    };
    const std::size_t last = entry.problems.size() + 2;
    options_.on_timeline({since_epoch(0), since_epoch(1), since_epoch(last - 1), since_epoch(last)});
  }
}

}  // namespace warpline
