#include "server/schedule/scheduler.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "kernels/status_macros.h"

namespace warpline {
namespace {

// A worker copies some 10 GB/s: parts of this size keep several of them busy and cost little to hand out.
constexpr std::size_t kCopyPartBytes = std::size_t{2} << 20;
// Copied faster than handed over to another thread and back.
constexpr std::size_t kCopyHereBytes = std::size_t{256} << 10;
// Larger programs may be cut into many pieces, each with several calls of the driver.
constexpr std::size_t kLaunchHereBytes = std::size_t{1} << 20;

// Whether the calling thread is there to wait for what it starts.
bool MayWaitHere() { return LaneRunner::OnLaneThread() || WorkerPool::OnWorkerThread(); }

void WriteScalars(const Plan& plan, std::span<const StepScalars> scalars, std::span<std::byte> region) {
  for (std::size_t i = 0; i < plan.program.steps.size() && !scalars.empty(); ++i) {
    if (!ReadsScalars(plan.program.steps[i].problem)) continue;
    std::memcpy(region.data() + plan.memory.scalars[i], &scalars.front(), sizeof(StepScalars));
    scalars = scalars.subspan(1);
  }
}

}  // namespace

// Shared by the tasks of one job's copy; the last one to end goes on with the job.
struct Scheduler::Copying {
  Staged staged;
  MonotonicTime since;
  std::atomic<int> left = 0;
};

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Create(const Options& options, Backend& backend,
                                                             StagingPool& pool, WorkerPool& workers,
                                                             Metrics& metrics) {
  auto scheduler = std::unique_ptr<Scheduler>(new Scheduler(options, backend, pool, workers, metrics));
  for (int device = 0; device < static_cast<int>(backend.devices().size()); ++device) {
    for (int i = 0; i < options.lanes_per_device; ++i) {
      ASSIGN_OR_RETURN(std::unique_ptr<Lane> lane, backend.CreateLane(device));
      scheduler->lanes_.push_back(std::make_unique<LaneRunner>(device, std::move(lane), options.spin));
      MutexLock lock(&scheduler->mutex_);
      scheduler->devices_[device].free.push_back(scheduler->lanes_.back().get());
      ++scheduler->devices_[device].lanes;
    }
    metrics.Lanes(device).Set(options.lanes_per_device);
  }
  pool.SetReleaseListener([raw = scheduler.get()] { raw->OnRelease(); });
  return scheduler;
}

Scheduler::Scheduler(const Options& options, Backend& backend, StagingPool& pool, WorkerPool& workers,
                     Metrics& metrics)
    : options_(options), backend_(backend), pool_(pool), workers_(workers), metrics_(metrics) {
  MutexLock lock(&mutex_);
  devices_.resize(backend.devices().size());
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    devices_[i].busy = metrics.LaneBusy(static_cast<int>(i));
    devices_[i].free_bytes = backend.devices()[i].pool_bytes;
  }
  release_thread_ = std::thread([this] { DispatchOnRelease(); });
}

Scheduler::~Scheduler() {
  pool_.SetReleaseListener(nullptr);
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  release_thread_.join();
  // Microseconds at most: whoever ended the last job is on the way out of Dispatch.
  while (uses_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
}

void Scheduler::OnRelease() {
  MutexLock lock(&mutex_);
  released_ = starved_;
}

void Scheduler::DispatchOnRelease() {
  for (;;) {
    {
      MutexLock lock(&mutex_);
      mutex_.Await([&] { return released_ || stopping_; });
      if (stopping_) return;
      released_ = false;
    }
    Dispatch();
  }
}

void Scheduler::ShowDepth() {
  metrics_.queue_depth.Set(
      static_cast<double>(for_memory_.size() + for_lane_.size() + (first_.has_value() ? 1 : 0)));
}

Scheduler::JobId Scheduler::Submit(Job job) {
  const Use use(*this);
  const bool small = IsSmall(*job.plan);
  const OwnerId owner = job.owner;
  const double cost = job.plan->device_seconds;
  auto queued = std::make_unique<Queued>();
  queued->job = std::move(job);
  queued->since = MonotonicClock::now();
  queued->queued = nvtx::SpanningRange(nvtx::Name::kQueue, queued->job.number);
  JobId id;
  {
    MutexLock lock(&mutex_);
    id = next_id_++;
    queued->id = id;
    if (small) {
      const bool needs_pool = queued->job.plan->device_bytes > 0;
      for_lane_.Push(owner, cost, id, {.queued = std::move(queued), .slots = std::nullopt}, needs_pool);
    } else {
      for_memory_.Push(owner, cost, id, std::move(queued));
      refused_after_.reset();
    }
    ShowDepth();
  }
  Dispatch();
  return id;
}

void Scheduler::Cancel(JobId id, const absl::Status& why) {
  const Use use(*this);
  std::unique_ptr<Queued> cancelled;
  {
    MutexLock lock(&mutex_);
    refused_after_.reset();  // others may have waited behind it
    if (first_.has_value() && first_->queued->id == id) {
      cancelled = std::move(first_->queued);
      first_.reset();
    } else if (auto waiting = for_memory_.Remove(id); waiting.has_value()) {
      cancelled = *std::move(waiting);
    } else if (auto ready = for_lane_.Remove(id); ready.has_value()) {
      if (ready->slots.has_value()) --ahead_;
      cancelled = std::move(ready->queued);
    }
    if (first_for_pool_ == id) first_for_pool_.reset();
    ShowDepth();
  }
  if (cancelled == nullptr) return;
  cancelled->job.seconds.queue = SecondsSince(cancelled->since);
  FinishWith(std::move(cancelled->job), why);
  Dispatch();  // others may have waited behind it
}

Scheduler::Device* Scheduler::DeviceWithLane(std::size_t pool_bytes) {
  Device* best = nullptr;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    Device& device = devices_[(first_device_ + i) % devices_.size()];
    const auto busy = [](const Device& d) { return d.lanes - static_cast<int>(d.free.size()); };
    if (device.free.empty() || device.free_bytes < pool_bytes) continue;
    if (best == nullptr || busy(device) < busy(*best)) best = &device;
  }
  return best;
}

Scheduler::Device* Scheduler::DeviceFor(const Queued& queued) {
  const std::size_t bytes = queued.job.plan->device_bytes;
  if (bytes == 0) return DeviceWithLane(0);
  if (first_for_pool_.value_or(queued.id) != queued.id) return nullptr;
  Device* const device = DeviceWithLane(bytes);
  // A job that waits for anything else must not keep the pools from those who could end.
  first_for_pool_ = device == nullptr ? std::optional(queued.id) : std::nullopt;
  return device;
}

std::optional<Scheduler::Staged> Scheduler::TakeForMemory() {
  if (ahead_ >= static_cast<int>(lanes_.size())) return std::nullopt;
  const std::uint64_t returns = pool_.returns();
  if (refused_after_ == returns) {  // as it would again; every small job comes by here
    starved_ = starved_ || first_.has_value();
    return std::nullopt;
  }
  std::optional<Staged> staged;
  if (first_.has_value()) {
    if (auto slots = first_->claim.TryTake(); slots.has_value()) {
      staged.emplace(Staged{.queued = std::move(first_->queued), .slots = *std::move(slots)});
      first_.reset();
    }
  }
  if (!staged.has_value()) {
    std::optional<StagingPool::Pair> slots;
    auto queued = for_memory_.TakeFirst([&](const std::unique_ptr<Queued>& candidate) {
      const MemoryPlan& memory = candidate->job.plan->memory;
      slots = pool_.TryAcquire(memory.input_bytes, memory.output_bytes);
      return slots.has_value();
    });
    if (queued.has_value()) staged.emplace(Staged{.queued = *std::move(queued), .slots = *std::move(slots)});
  }
  if (staged.has_value()) {
    ++ahead_;
    ShowDepth();
    return staged;
  }
  if (!first_.has_value() && !for_memory_.empty()) {
    std::unique_ptr<Queued> queued = *for_memory_.TakeFirst();
    first_.emplace(std::move(queued), pool_);
    // It may find all it needs right away: what nobody else could use.
    if (auto slots = first_->claim.TryTake(); slots.has_value()) {
      staged.emplace(Staged{.queued = std::move(first_->queued), .slots = *std::move(slots)});
      first_.reset();
      ++ahead_;
      ShowDepth();
      return staged;
    }
  }
  starved_ = starved_ || first_.has_value();
  refused_after_ = returns;
  return std::nullopt;
}

std::optional<Scheduler::Matched> Scheduler::TakeMatch() {
  if (for_lane_.empty() || DeviceWithLane(0) == nullptr) return std::nullopt;
  Device* device = nullptr;
  std::optional<StagingPool::Pair> slots;
  std::optional<Ready> ready = for_lane_.TakeFirst([&](const Ready& candidate) {
    device = DeviceFor(*candidate.queued);
    if (device == nullptr || candidate.slots.has_value()) return device != nullptr;
    const MemoryPlan& memory = candidate.queued->job.plan->memory;
    slots = pool_.TryAcquire(memory.input_bytes, memory.output_bytes);
    starved_ = starved_ || !slots.has_value();
    return slots.has_value();
  });
  if (!ready.has_value()) return std::nullopt;
  Staged staged{.queued = std::move(ready->queued),
                .slots = ready->slots.has_value() ? *std::move(ready->slots) : *std::move(slots),
                .copied = ready->slots.has_value()};
  if (staged.copied) --ahead_;
  ShowDepth();
  // The lane that ran last has the warmest caches and a thread that may still be awake. Lanes that keep
  // graphs are taken in turn, so that each of them has met every signature in time.
  const Plan& plan = *staged.queued->job.plan;
  Matched matched{.lane = plan.stateless ? device->free.back() : device->free.front()};
  (plan.stateless ? device->free.pop_back() : device->free.pop_front());
  device->free_bytes -= plan.device_bytes;
  matched.staged = std::move(staged);
  matched.alone = !matched.staged.queued->job.crowded && busy_lanes_ == 0 && for_lane_.empty() &&
                  for_memory_.empty() && !first_.has_value() && ahead_ == 0;
  first_device_ = (first_device_ + 1) % devices_.size();
  device->busy.Set(device->lanes - static_cast<double>(device->free.size()));
  ++busy_lanes_;
  return matched;
}

void Scheduler::Dispatch() {
  thread_local const Scheduler* dispatching = nullptr;
  if (dispatching == this) return;
  const absl::Cleanup done = [previous = std::exchange(dispatching, this)] { dispatching = previous; };
  for (;;) {
    std::optional<Matched> matched;
    std::optional<Staged> staged;
    {
      MutexLock lock(&mutex_);
      starved_ = false;
      matched = TakeMatch();
      if (!matched.has_value()) staged = TakeForMemory();
    }
    if (matched.has_value()) {
      Start(*std::move(matched));
    } else if (staged.has_value()) {
      StartCopying(*std::move(staged));
    } else {
      return;
    }
  }
}

void Scheduler::StartCopying(Staged staged) {
  const std::size_t bytes = staged.slots.input.bytes().size();
  if (bytes <= kCopyHereBytes && !staged.queued->job.crowded) {
    Copying copying{.staged = std::move(staged), .since = MonotonicClock::now()};
    const Job& job = copying.staged.queued->job;
    if (CheckAlive(job).ok()) job.copy_in(copying.staged.slots.input.bytes(), 0, 1);
    return OnCopied(copying);
  }
  const int parts = static_cast<int>(
      std::clamp<std::size_t>(bytes / kCopyPartBytes, 1, static_cast<std::size_t>(4 * workers_.size())));
  auto copying = std::make_shared<Copying>();
  staged.queued->job.seconds.queue = SecondsSince(staged.queued->since);
  copying->staged = std::move(staged);
  copying->since = MonotonicClock::now();
  copying->left.store(parts, std::memory_order_relaxed);
  for (int part = 0; part < parts; ++part) {
    workers_.Post([this, copying, part, parts] {
      const Job& job = copying->staged.queued->job;
      if (CheckAlive(job).ok()) {
        const nvtx::Range range(nvtx::Name::kStage, job.number);
        job.copy_in(copying->staged.slots.input.bytes(), part, parts);
      }
      if (copying->left.fetch_sub(1, std::memory_order_acq_rel) == 1) OnCopied(*copying);
    });
  }
}

void Scheduler::OnCopied(Copying& copying) {
  const Use use(*this);
  Staged staged = std::move(copying.staged);
  Job& job = staged.queued->job;
  job.seconds.copy_in = SecondsSince(copying.since);
  job.copy_in = nullptr;
  absl::Status alive = CheckAlive(job);
  if (alive.ok()) {
    staged.queued->since = MonotonicClock::now();
    const OwnerId owner = job.owner;
    const double cost = job.plan->device_seconds;
    const JobId id = staged.queued->id;
    MutexLock lock(&mutex_);
    const bool needs_pool = job.plan->device_bytes > 0;
    for_lane_.Push(owner, cost, id, {.queued = std::move(staged.queued), .slots = std::move(staged.slots)},
                   needs_pool);
    ShowDepth();
  } else {
    {
      MutexLock lock(&mutex_);
      --ahead_;
    }
    staged.slots = {};
    FinishWith(std::move(job), std::move(alive));
  }
  Dispatch();
}

bool Scheduler::MayRunHere(const Matched& matched) const {
  const Job& job = matched.staged.queued->job;
  const Plan& plan = *job.plan;
  if (plan.memory.input_bytes > kLaunchHereBytes) return false;
  if (!matched.lane->lane().LaunchesAtOnce(plan.program, plan.memory, plan.signature)) return false;
  // Waiting for a device is for those who have nothing else to do.
  return !job.crowded || !backend_.launches_asynchronously() || MayWaitHere();
}

void Scheduler::Start(Matched matched) {
  if (MayRunHere(matched)) return Run(matched);
  LaneRunner* const lane = matched.lane;
  lane->Post([this, matched = std::move(matched)]() mutable { Run(matched); });
}

void Scheduler::Run(Matched& matched) {
  Queued& queued = *matched.staged.queued;
  Job& job = queued.job;
  LaneRunner* const lane = matched.lane;
  job.seconds.queue += SecondsSince(queued.since);
  queued.queued.End();
  const std::span<std::byte> input = matched.staged.slots.input.bytes();
  absl::Status alive = CheckAlive(job);
  if (alive.ok() && !matched.staged.copied) {
    const nvtx::Range range(nvtx::Name::kStage, job.number);
    const MonotonicTime start = MonotonicClock::now();
    job.copy_in(input, 0, 1);
    job.copy_in = nullptr;
    job.seconds.copy_in = SecondsSince(start);
  }
  if (!alive.ok()) {
    const Use use(*this);
    matched.staged.slots = {};
    FreeLane(lane, job, -job.plan->device_seconds);
    FinishWith(std::move(job), std::move(alive));
    Dispatch();
    return;
  }
  WriteScalars(*job.plan, job.scalars, input);
  const MonotonicTime launched = MonotonicClock::now();
  const StagedProgram program = {.program = &job.plan->program,
                                 .plan = &job.plan->memory,
                                 .signature = job.plan->signature,
                                 .bindings = job.bindings,
                                 .input = input,
                                 .output = matched.staged.slots.output.bytes(),
                                 .deadline = job.deadline,
                                 .cancelled = job.cancelled,
                                 .wait_briefly = matched.alone || MayWaitHere()};
  const nvtx::Range range(nvtx::Name::kLaunch, job.number);
  queued.on_device = nvtx::SpanningRange(nvtx::Name::kDevice, job.number);
  if (options_.watchdog != nullptr) {
    matched.running = options_.watchdog->Started(lane->device(), job.plan->device_seconds);
  }
  lane->lane().Launch(program, [this, launched, matched = std::move(matched)](LaunchReport report) mutable {
    OnLaunched(matched, launched, std::move(report));
  });
}

void Scheduler::OnLaunched(Matched& matched, MonotonicTime launched, LaunchReport report) {
  const Use use(*this);
  if (options_.watchdog != nullptr) options_.watchdog->Ended(matched.running);
  matched.staged.queued->on_device.End();
  Job job = std::move(matched.staged.queued->job);
  const nvtx::Range range(nvtx::Name::kComplete, job.number);
  job.seconds.device = SecondsSince(launched);
  Result result;
  result.status = std::move(report.status);
  result.variants = std::move(report.variants);
  result.device = matched.lane->device();
  result.output = std::move(matched.staged.slots.output);
  matched.staged.slots.input.Release();
  FreeLane(matched.lane, job, job.seconds.device - job.plan->device_seconds);
  // First the answer, which somebody waits for; then other jobs, of which there may be many to start.
  Finish(std::move(job), std::move(result));
  Dispatch();
}

void Scheduler::FreeLane(LaneRunner* lane, const Job& job, double seconds) {
  MutexLock lock(&mutex_);
  for_lane_.Charge(job.owner, seconds);
  Device& device = devices_[lane->device()];
  device.free_bytes += job.plan->device_bytes;
  device.free.push_back(lane);
  --busy_lanes_;
  device.busy.Set(device.lanes - static_cast<double>(device.free.size()));
}

}  // namespace warpline
