#include "server/schedule/scheduler.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace warpline {
namespace {

// Larger programs may be cut into many pieces, each with several calls of the driver.
constexpr std::size_t kLaunchHereBytes = std::size_t{1} << 20;

// A claimant that has had so much device time more than another one that waits gets no lane that is kept.
constexpr double kMaxLeadSeconds = 10e-3;

// How long jobs that LaneShares holds back wait before they are looked at again, if nothing else happens.
constexpr absl::Duration kLookAgain = absl::Milliseconds(20);

// Returns whether the calling thread is there to wait for what it starts.
bool MayWaitHere() { return LaneRunner::OnLaneThread() || WorkerPool::OnWorkerThread(); }

void WriteScalars(const Plan& plan, std::span<const StepScalars> scalars, std::span<std::byte> region) {
  for (std::size_t i = 0; i < plan.program.steps.size() && !scalars.empty(); ++i) {
    const auto count = static_cast<std::size_t>(ScalarCount(plan.program.steps[i].problem));
    if (count == 0) continue;
    std::memcpy(region.data() + plan.memory.scalars[i], scalars.data(), count * sizeof(StepScalars));
    scalars = scalars.subspan(count);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Create(const Options& options, Backend& backend,
                                                             StagingPool& pool, WorkerPool& workers,
                                                             Metrics& metrics) {
  ASSIGN_OR_RETURN(std::unique_ptr<Lanes> lanes, Lanes::Create({.per_device = options.lanes_per_device,
                                                                .kept = options.lanes_kept,
                                                                .spin = options.spin},
                                                               backend, metrics));
  auto scheduler =
      std::unique_ptr<Scheduler>(new Scheduler(options, backend, pool, workers, metrics, std::move(lanes)));
  pool.SetReleaseListener([raw = scheduler.get()] { raw->OnRelease(); });
  return scheduler;
}

Scheduler::Scheduler(const Options& options, Backend& backend, StagingPool& pool, WorkerPool& workers,
                     Metrics& metrics, std::unique_ptr<Lanes> lanes)
    : options_(options),
      backend_(backend),
      pool_(pool),
      workers_(workers),
      metrics_(metrics),
      lane_shares_(
          {.lanes = lanes->size() - options.lanes_kept * static_cast<int>(backend.devices().size()),
           .seconds_max = options.running_seconds_max * static_cast<double>(backend.devices().size())}),
      lanes_(std::move(lanes)),
      release_thread_([this] { DispatchOnRelease(); }) {}

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
      const MonotonicTime until = look_again_;
      mutex_.AwaitUntil([&] { return released_ || stopping_ || look_again_ < until; }, until);
      if (stopping_) return;
      if (!released_ && MonotonicClock::now() < look_again_) continue;
      released_ = false;
      look_again_ = kNever;
    }
    Dispatch();
  }
}

void Scheduler::ShowDepth() {
  metrics_.queue_depth.Set(
      static_cast<double>(for_memory_.size() + for_lane_.size() + (first_.has_value() ? 1 : 0)));
}

bool Scheduler::IsBusy() {
  MutexLock lock(&mutex_);
  return lanes_->busy() > 0;
}

Scheduler::JobId Scheduler::Submit(Job job) {
  const Use use(*this);
  if (const std::size_t bytes = job.device_bytes(); bytes > 0) {
    std::size_t largest = 0;
    {
      MutexLock lock(&mutex_);
      largest = lanes_->LargestPool(job.device);
    }
    // CheckFits of the backend has looked at the largest pool of all devices.
    if (bytes > largest) {
      std::string text = absl::StrCat("the request needs ", bytes, " bytes of scratch memory on device ",
                                      job.device.value_or(0), ", where its resident tensors lie");
      if (job.peer_bytes > 0) {
        absl::StrAppend(&text, ", ", job.peer_bytes, " of them for operands that lie on other devices");
      }
      absl::StrAppend(&text, "; limit ", largest, " (the server's --device-bytes)");
      FinishWith(std::move(job), absl::FailedPreconditionError(text));
      return 0;
    }
  }
  const bool small = IsSmall(*job.plan);
  const Claimant claimant = job.caller.claimant;
  if (options_.limits_of != nullptr) job.weight = options_.limits_of(job.caller.owner).weight;
  job.expected_seconds =
      (job.plan->alone.seconds() > 0 ? job.plan->alone.seconds() : job.plan->device_seconds) +
      job.peer_seconds();
  const double cost = job.expected_seconds / job.weight;
  const bool needs_pool = job.device_bytes() > 0;
  auto queued = std::make_unique<Queued>();
  queued->job = std::move(job);
  queued->since = MonotonicClock::now();
  queued->queued = nvtx::SpanningRange(nvtx::Name::kQueue, queued->job.number);
  JobId id;
  {
    MutexLock lock(&mutex_);
    id = next_id_++;
    queued->id = id;
    if (!IsShort(queued->job)) {
      lane_shares_.Arrive(claimant);
      if (small) lane_shares_.BecomeReady(claimant);
    }
    if (small) {
      for_lane_.Push(claimant, cost, id, {.queued = std::move(queued), .slots = std::nullopt}, needs_pool);
    } else {
      for_memory_.Push(claimant, cost, id, std::move(queued), needs_pool);
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
  // Goes after the lock: a slot that is released calls OnRelease.
  std::optional<StagingPool::Pair> slots;
  bool was_ready = false;
  {
    MutexLock lock(&mutex_);
    refused_after_.reset();  // others may have waited behind it
    lanes_->Forget(id);
    if (first_.has_value() && first_->queued->id == id) {
      cancelled = std::move(first_->queued);
      first_.reset();
    } else if (auto waiting = for_memory_.Remove(id); waiting.has_value()) {
      cancelled = *std::move(waiting);
    } else if (auto ready = for_lane_.Remove(id); ready.has_value()) {
      was_ready = true;
      if (ready->slots.has_value()) NoLongerAhead(ready->queued->job);
      slots.swap(ready->slots);
      cancelled = std::move(ready->queued);
    }
    ShowDepth();
  }
  if (cancelled == nullptr) return;
  slots.reset();
  cancelled->job.seconds.queue = SecondsSince(cancelled->since);
  Withdraw(std::move(cancelled->job), was_ready, why);
  Dispatch();  // others may have waited behind it
}

void Scheduler::Withdraw(Job job, bool was_ready, absl::Status why) {
  if (!IsShort(job)) {
    MutexLock lock(&mutex_);
    lane_shares_.Leave(job.caller.claimant, was_ready, MonotonicClock::now());
  }
  FinishWith(std::move(job), std::move(why));
}

void Scheduler::GoAhead(const Job& job) {
  ++AheadOf(job);
  if (!IsShort(job)) lane_shares_.Stage(job.caller.claimant, job.device_seconds());
}

void Scheduler::NoLongerAhead(const Job& job) {
  --AheadOf(job);
  if (!IsShort(job)) lane_shares_.EndStaging(job.caller.claimant, job.device_seconds());
  refused_after_.reset();
}

std::optional<Scheduler::Matched> Scheduler::TakeMatch() {
  if (for_lane_.empty() || lanes_->busy() == lanes_->size()) return std::nullopt;
  std::optional<int> device;
  bool kept = false;
  std::optional<StagingPool::Pair> slots;
  std::optional<Ready> ready = for_lane_.TakeFirst([&](const Ready& candidate) {
    const Job& job = candidate.queued->job;
    const Plan& plan = *job.plan;
    kept =
        options_.lanes_kept > 0 && IsShort(job) && for_lane_.LeadOf(job.caller.claimant) <= kMaxLeadSeconds;
    if (!kept && !IsShort(job)) {
      const MonotonicTime now = MonotonicClock::now();
      if (!lane_shares_.MayStart(job.caller.claimant, job.device_seconds(), now)) {
        look_again_ = std::min(look_again_, now + absl::ToChronoNanoseconds(kLookAgain));
        lanes_->Forget(candidate.queued->id);  // others that need a pool need not wait for it
        return false;
      }
    }
    device = lanes_->DeviceFor({.job = candidate.queued->id,
                                .pool_bytes = job.device_bytes(),
                                .only = job.device,
                                .kept = kept,
                                .whole_pool = candidate.queued->whole_pool});
    if (!device.has_value() || candidate.slots.has_value()) return device.has_value();
    const MemoryPlan& memory = plan.memory;
    slots = pool_.TryAcquire(memory.input_bytes, memory.output_bytes);
    starved_ = starved_ || !slots.has_value();
    return slots.has_value();
  });
  if (!ready.has_value()) return std::nullopt;
  Staged staged{.queued = std::move(ready->queued),
                .slots = ready->slots.has_value() ? *std::move(ready->slots) : *std::move(slots),
                .copied = ready->slots.has_value()};
  if (staged.copied) NoLongerAhead(staged.queued->job);
  ShowDepth();
  Matched matched;
  const bool idle = lanes_->busy() == 0 && for_lane_.empty() && for_memory_.empty() && !first_.has_value() &&
                    ahead_ == 0 && ahead_for_pool_ == 0;
  matched.alone = !staged.queued->job.crowded && (idle || (kept && lanes_->busy_kept() == 0));
  matched.kept = kept;
  // Among short jobs none need go first, and a graph is made for each stream that runs a program.
  matched.urgent = kept && lanes_->busy_kept() < options_.lanes_kept && long_running_ > 0;
  if (const Job& job = staged.queued->job; !IsShort(job)) {
    ++long_running_;
    lane_shares_.Start(job.caller.claimant, job.device_seconds());
  }
  matched.lane = lanes_->Take(*device, staged.queued->job.device_bytes(), kept);
  matched.staged = std::move(staged);
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

bool Scheduler::MayRunHere(const Matched& matched) const {
  const Job& job = matched.staged.queued->job;
  const Plan& plan = *job.plan;
  if (plan.memory.TravellingBytes() > 2 * kLaunchHereBytes) return false;
  if (job.find_sinks != nullptr && !backend_.HasResidentAtHand(matched.lane->device(), job.sink_bytes)) {
    return false;
  }
  if (!matched.lane->lane().LaunchesAtOnce(plan.program, plan.memory, plan.compiled.get())) return false;
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
  if (alive.ok() && job.find_sinks != nullptr) {
    alive = job.find_sinks(lane->device(), job.bindings);
    job.find_sinks = nullptr;
  }
  if (!alive.ok()) {
    const Use use(*this);
    matched.staged.slots = {};
    FreeLane(matched, job, 0);
    FinishWith(std::move(job), std::move(alive));
    Dispatch();
    return;
  }
  WriteScalars(*job.plan, job.scalars, input);
  const MonotonicTime launched = MonotonicClock::now();
  const StagedProgram program = {.program = &job.plan->program,
                                 .plan = &job.plan->memory,
                                 .compiled = job.plan->compiled.get(),
                                 .bindings = job.bindings,
                                 .input = input,
                                 .output = matched.staged.slots.output.bytes(),
                                 .deadline = job.deadline,
                                 .cancelled = job.cancelled,
                                 .wait_briefly = matched.alone || MayWaitHere(),
                                 .urgent = matched.urgent,
                                 .owner = job.caller.claimant.share};
  matched.request = RunningRequest(job.request_id);
  const nvtx::Range range(nvtx::Name::kLaunch, job.number);
  queued.on_device = nvtx::SpanningRange(nvtx::Name::kDevice, job.number);
  if (options_.watchdog != nullptr) {
    matched.running = options_.watchdog->Started(lane->device(), job.device_seconds());
  }
  lane->lane().Launch(program, [this, launched, matched = std::move(matched)](LaunchReport report) mutable {
    OnLaunched(matched, launched, std::move(report));
  });
}

void Scheduler::OnLaunched(Matched& matched, MonotonicTime launched, LaunchReport report) {
  const Use use(*this);
  if (options_.watchdog != nullptr) options_.watchdog->Ended(matched.running);
  matched.staged.queued->on_device.End();
  matched.request.End();
  if (report.pool_in_pieces && CheckAlive(matched.staged.queued->job).ok() &&
      !std::exchange(matched.staged.queued->whole_pool, true)) {
    PutBack(matched);
    return Dispatch();
  }
  Job job = std::move(matched.staged.queued->job);
  const nvtx::Range range(nvtx::Name::kComplete, job.number);
  job.seconds.device = SecondsSince(launched);
  Result result;
  result.status = std::move(report.status);
  result.variants = std::move(report.variants);
  result.device = matched.lane->device();
  result.output = std::move(matched.staged.slots.output);
  result.bindings = std::move(job.bindings);
  matched.staged.slots.input.Release();
  // Alone it would not have taken longer than beside others.
  const bool informs =
      job.peer_bytes == 0 && (!report.shared || job.seconds.device < job.plan->alone.seconds());
  if (result.status.ok() && informs) job.plan->alone.Measured(job.seconds.device);
  const double charged =
      std::min(job.seconds.device,
               ChargedSeconds(job.seconds.device, report.shared, job.plan->alone, job.plan->device_seconds) +
                   job.peer_seconds());
  if (options_.owner_metrics != nullptr) {
    options_.owner_metrics->Of(job.caller.owner).device_seconds.Add(charged);
  }
  FreeLane(matched, job, charged);
  // First the answer, which somebody waits for; then other jobs, of which there may be many to start.
  Finish(std::move(job), std::move(result));
  Dispatch();
}

void Scheduler::PutBack(Matched& matched) {
  Queued& queued = *matched.staged.queued;
  Job& job = queued.job;
  FreeLane(matched, job, 0);
  // Sinks have been found there, and the input lies in its slot.
  job.device = matched.lane->device();
  queued.since = MonotonicClock::now();
  const Claimant claimant = job.caller.claimant;
  const double cost = job.expected_seconds / job.weight;
  const JobId id = queued.id;
  MutexLock lock(&mutex_);
  if (!IsShort(job)) {
    lane_shares_.Arrive(claimant);
    lane_shares_.BecomeReady(claimant);
  }
  if (matched.staged.copied) for_memory_.Charge(claimant, cost);  // FreeLane has given it back
  GoAhead(job);
  lanes_->PutFirst({.job = id, .pool_bytes = job.device_bytes(), .only = job.device, .whole_pool = true});
  for_lane_.PutBack(claimant, cost, id,
                    {.queued = std::move(matched.staged.queued), .slots = std::move(matched.staged.slots)});
  ShowDepth();
}

void Scheduler::FreeLane(const Matched& matched, const Job& job, double seconds) {
  MutexLock lock(&mutex_);
  const double difference = (seconds - job.expected_seconds) / job.weight;
  for_lane_.Charge(job.caller.claimant, difference);
  if (matched.staged.copied) for_memory_.Charge(job.caller.claimant, difference);
  lanes_->GiveBack(matched.lane, job.device_bytes(), matched.kept);
  if (!IsShort(job)) {
    --long_running_;
    lane_shares_.End(job.caller.claimant, job.device_seconds());
    lane_shares_.Leave(job.caller.claimant, /*was_ready=*/true, MonotonicClock::now());
    refused_after_.reset();  // a job of the same share may now be staged
  }
}

}  // namespace warpline
