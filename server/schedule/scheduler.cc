#include "server/schedule/scheduler.h"

#include <atomic>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "kernels/status_macros.h"

namespace warpline {
namespace {

double SecondsSince(absl::Time start) { return absl::ToDoubleSeconds(absl::Now() - start); }

// Why the job must not go on; OK if it may.
absl::Status CheckAlive(const Job& job) {
  if (job.cancelled != nullptr && job.cancelled->load(std::memory_order_relaxed)) {
    return absl::CancelledError("the request was cancelled");
  }
  if (absl::Now() >= job.deadline) return absl::DeadlineExceededError("the deadline passed before the start");
  return absl::OkStatus();
}

void Finish(Job job, Result result) {
  result.seconds = job.seconds;
  job.fill_inputs = nullptr;  // what it holds of the request goes before the budget does
  job.ticket.Return();
  job.done(std::move(result));
}

void FinishWith(Job job, absl::Status status) {
  Result result;
  result.status = std::move(status);
  Finish(std::move(job), std::move(result));
}

void WriteScalars(const Job& job, std::span<std::byte> region) {
  for (std::size_t i = 0; i < job.program.steps.size(); ++i) {
    const Step& step = job.program.steps[i];
    if (!ReadsScalars(step.problem)) continue;
    std::memcpy(region.data() + job.plan.scalars[i], &step.scalars, sizeof(step.scalars));
  }
}

}  // namespace

// A job with its lane and slots; on the heap, because the launch's callback needs it last.
struct Scheduler::Match {
  std::unique_ptr<Waiting> waiting;
  LaneRunner* lane = nullptr;
  StagingPool::Pair slots;
  DeviceWatchdog::Token running;
};

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Create(const Options& options, Backend& backend,
                                                             StagingPool& pool, Metrics& metrics) {
  auto scheduler = std::unique_ptr<Scheduler>(new Scheduler(options, backend, pool, metrics));
  for (int device = 0; device < static_cast<int>(backend.devices().size()); ++device) {
    for (int i = 0; i < options.lanes_per_device; ++i) {
      ASSIGN_OR_RETURN(std::unique_ptr<Lane> lane, backend.CreateLane(device));
      scheduler->lanes_.push_back(std::make_unique<LaneRunner>(device, std::move(lane)));
      MutexLock lock(&scheduler->mutex_);
      scheduler->devices_[device].free.push_back(scheduler->lanes_.back().get());
      ++scheduler->devices_[device].lanes;
    }
    metrics.Lanes(device).Set(options.lanes_per_device);
  }
  pool.SetReleaseListener([raw = scheduler.get()] { raw->OnRelease(); });
  return scheduler;
}

Scheduler::Scheduler(const Options& options, Backend& backend, StagingPool& pool, Metrics& metrics)
    : options_(options), backend_(backend), pool_(pool), metrics_(metrics) {
  MutexLock lock(&mutex_);
  devices_.resize(backend.devices().size());
  for (std::size_t i = 0; i < devices_.size(); ++i) devices_[i].busy = metrics.LaneBusy(static_cast<int>(i));
  release_thread_ = std::thread([this] { DispatchOnRelease(); });
}

Scheduler::~Scheduler() {
  pool_.SetReleaseListener(nullptr);
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  release_thread_.join();
}

void Scheduler::OnRelease() {
  MutexLock lock(&mutex_);
  released_ = starved_;
}

void Scheduler::DispatchOnRelease() {
  for (;;) {
    {
      MutexLock lock(&mutex_);
      const absl::Time until = blocked_until_;
      mutex_.AwaitUntil([&] { return released_ || stopping_ || blocked_until_ != until; }, until);
      if (stopping_) return;
      if (!released_ && blocked_until_ != until) continue;  // another time to wait for
      released_ = false;
      if (absl::Now() >= blocked_until_) {
        blocked_until_ = absl::InfiniteFuture();
        queue_.front().passed = 0;
      }
    }
    Dispatch();
  }
}

Scheduler::JobId Scheduler::Submit(Job job) {
  JobId id;
  {
    MutexLock lock(&mutex_);
    id = next_id_++;
    queue_.push_back({.id = id, .job = std::move(job), .since = absl::Now()});
    queue_.back().queued = nvtx::SpanningRange(nvtx::Name::kQueue, queue_.back().job.number);
    waiting_[id] = std::prev(queue_.end());
    metrics_.queue_depth.Set(static_cast<double>(queue_.size()));
  }
  Dispatch();
  return id;
}

void Scheduler::Cancel(JobId id, const absl::Status& why) {
  std::optional<Waiting> cancelled;
  {
    MutexLock lock(&mutex_);
    const auto found = waiting_.find(id);
    if (found == waiting_.end()) return;
    if (found->second == queue_.begin()) blocked_until_ = absl::InfiniteFuture();
    cancelled.emplace(std::move(*found->second));
    queue_.erase(found->second);
    waiting_.erase(found);
    metrics_.queue_depth.Set(static_cast<double>(queue_.size()));
  }
  cancelled->job.seconds.queue = SecondsSince(cancelled->since);
  FinishWith(std::move(cancelled->job), why);
  Dispatch();  // others may have waited behind it
}

std::optional<Scheduler::Match> Scheduler::TakeMatch() {
  Device* best = nullptr;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    Device& device = devices_[(first_device_ + i) % devices_.size()];
    const auto busy = [](const Device& d) { return d.lanes - static_cast<int>(d.free.size()); };
    if (!device.free.empty() && (best == nullptr || busy(device) < busy(*best))) best = &device;
  }
  starved_ = false;
  if (best == nullptr) return std::nullopt;
  // How far to look past jobs that wait for memory: bounds the time under the lock.
  constexpr int kLookAhead = 64;
  int looked_at = 0;
  for (auto it = queue_.begin(); it != queue_.end() && looked_at < kLookAhead; ++it, ++looked_at) {
    auto slots = pool_.TryAcquire(it->job.plan.input_bytes, it->job.plan.output_bytes);
    if (!slots.has_value()) {
      if (it == queue_.begin() && IsBlockedBy(*it)) break;
      continue;
    }
    if (it == queue_.begin()) {
      blocked_until_ = absl::InfiniteFuture();
    } else {
      ++queue_.front().passed;
    }
    Match match;
    match.waiting = std::make_unique<Waiting>(std::move(*it));
    match.lane = best->free.front();
    match.slots = std::move(*slots);
    best->free.pop_front();
    first_device_ = (first_device_ + 1) % devices_.size();
    best->busy.Set(best->lanes - static_cast<double>(best->free.size()));
    waiting_.erase(it->id);
    queue_.erase(it);
    metrics_.queue_depth.Set(static_cast<double>(queue_.size()));
    return match;
  }
  starved_ = true;
  return std::nullopt;
}

bool Scheduler::IsBlockedBy(const Waiting& oldest) {
  if (oldest.passed < options_.max_passes) return false;
  if (blocked_until_ == absl::InfiniteFuture()) blocked_until_ = absl::Now() + options_.block;
  return true;
}

void Scheduler::Dispatch() {
  thread_local bool dispatching = false;
  if (dispatching) return;
  dispatching = true;
  const absl::Cleanup done = [] { dispatching = false; };
  for (;;) {
    std::optional<Match> match;
    {
      MutexLock lock(&mutex_);
      if (queue_.empty()) return;
      match = TakeMatch();
    }
    if (!match.has_value()) return;
    Start(std::move(*match));
  }
}

void Scheduler::Start(Match match) {
  if (backend_.launches_asynchronously() && match.slots.input.bytes().size() <= options_.inline_stage_bytes) {
    RunJob(match);
    return;
  }
  LaneRunner* lane = match.lane;
  lane->Post([this, match = std::move(match)]() mutable { RunJob(match); });
}

void Scheduler::RunJob(Match& match) {
  Waiting& waiting = *match.waiting;
  Job& job = waiting.job;
  job.seconds.queue = SecondsSince(waiting.since);
  waiting.queued.End();
  absl::Status alive = CheckAlive(job);
  if (alive.ok()) {
    const nvtx::Range range(nvtx::Name::kStage, job.number);
    const absl::Time start = absl::Now();
    const std::span<std::byte> region = match.slots.input.bytes();
    job.fill_inputs(region);
    job.fill_inputs = nullptr;
    WriteScalars(job, region);
    job.seconds.stage = SecondsSince(start);
    alive = CheckAlive(job);  // staging a large payload takes a while
  }
  LaneRunner* lane = match.lane;
  if (!alive.ok()) {
    Job dead = std::move(job);
    match.slots = {};
    ReleaseLane(lane);
    FinishWith(std::move(dead), std::move(alive));
    return;
  }
  const absl::Time launched = absl::Now();
  const StagedProgram staged = {.program = &job.program,
                                .plan = &job.plan,
                                .signature = job.signature,
                                .input = match.slots.input.bytes(),
                                .output = match.slots.output.bytes(),
                                .deadline = job.deadline,
                                .cancelled = job.cancelled};
  const nvtx::Range range(nvtx::Name::kLaunch, job.number);
  waiting.on_device = nvtx::SpanningRange(nvtx::Name::kDevice, job.number);
  if (options_.watchdog != nullptr) {
    match.running = options_.watchdog->Started(lane->device(), job.device_seconds);
  }
  lane->lane().Launch(staged, [this, launched, match = std::move(match)](LaunchReport report) mutable {
    if (options_.watchdog != nullptr) options_.watchdog->Ended(match.running);
    match.waiting->on_device.End();
    Job job = std::move(match.waiting->job);
    const nvtx::Range range(nvtx::Name::kComplete, job.number);
    job.seconds.device = SecondsSince(launched);
    Result result;
    result.status = std::move(report.status);
    result.variants = std::move(report.variants);
    result.device = match.lane->device();
    result.output = std::move(match.slots.output);
    match.slots.input.Release();
    // Before the answer: with many in flight the device would wait for gRPC.
    ReleaseLane(match.lane);
    Finish(std::move(job), std::move(result));
  });
}

void Scheduler::ReleaseLane(LaneRunner* lane) {
  {
    MutexLock lock(&mutex_);
    Device& device = devices_[lane->device()];
    device.free.push_back(lane);
    device.busy.Set(device.lanes - static_cast<double>(device.free.size()));
  }
  Dispatch();
}

}  // namespace warpline
