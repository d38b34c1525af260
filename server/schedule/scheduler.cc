#include "server/schedule/scheduler.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace warpline {
namespace {

// A claimant gets no reserved lane if it is this far ahead, in device time, of another one that waits.
constexpr double kMaxLeadSeconds = 10e-3;

// How soon jobs that LaneShares holds back are looked at again, if nothing else happens.
constexpr absl::Duration kLookAgain = absl::Milliseconds(20);

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
      load_(backend.devices().size()),
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
  // Takes microseconds at most: the thread that ended the last job is about to leave Dispatch.
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
    // Backend::Compile has checked against the largest pool of all devices.
    if (bytes > largest) {
      std::string text = absl::StrCat("the request needs ", bytes, " bytes of scratch memory on device ",
                                      job.device.value_or(0), ", where its resident tensors lie");
      if (job.block_bytes > 0) {
        absl::StrAppend(&text, ", ", job.block_bytes, " of them for operands that lie on other devices");
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
      job.peer_seconds;
  if (job.device.has_value()) job.load = load_.Add(*job.device, job.expected_seconds);
  const double cost = job.expected_seconds / job.weight;
  const std::size_t line = LineOf(job);
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
      if (IsShort(queued->job)) ++short_waiting_;
      for_lane_.Push(claimant, cost, id, {.queued = std::move(queued), .slots = std::nullopt}, line);
    } else {
      for_memory_.Push(claimant, cost, id, std::move(queued), line);
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
  // Destroyed after the lock is released: releasing a slot calls OnRelease.
  std::optional<StagingPool::Pair> slots;
  bool was_ready = false;
  {
    MutexLock lock(&mutex_);
    refused_after_.reset();  // others may have waited for this job
    lanes_->Forget(id);
    if (first_.has_value() && first_->queued->id == id) {
      cancelled = std::move(first_->queued);
      first_.reset();
    } else if (auto waiting = for_memory_.Remove(id); waiting.has_value()) {
      cancelled = *std::move(waiting);
    } else if (auto ready = for_lane_.Remove(id); ready.has_value()) {
      was_ready = true;
      if (ready->slots.has_value()) NoLongerAhead(ready->queued->job);
      if (IsShort(ready->queued->job)) --short_waiting_;
      slots.swap(ready->slots);
      cancelled = std::move(ready->queued);
    }
    ShowDepth();
  }
  if (cancelled == nullptr) return;
  slots.reset();
  cancelled->job.seconds.queue = SecondsSince(cancelled->since);
  Withdraw(std::move(cancelled->job), was_ready, why);
  Dispatch();  // others may have waited for this job
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
  // Every submission and every end comes through here, so it must cost little while all lanes are busy.
  if (for_lane_.empty() || !lanes_->HasFree(std::nullopt, /*kept=*/short_waiting_ > 0)) return std::nullopt;
  std::optional<int> device;
  bool kept = false;
  std::optional<StagingPool::Pair> slots;
  std::optional<Ready> ready = for_lane_.TakeFirst([&](const Ready& candidate) {
    const Job& job = candidate.queued->job;
    const Plan& plan = *job.plan;
    kept =
        options_.lanes_kept > 0 && IsShort(job) && for_lane_.LeadOf(job.caller.claimant) <= kMaxLeadSeconds;
    // Jobs that need a pool are asked about all the same: only then do they stop to keep others from it.
    if (job.device_bytes() == 0 && !lanes_->HasFree(job.device, kept)) return false;
    if (!kept && !IsShort(job)) {
      const MonotonicTime now = MonotonicClock::now();
      if (!lane_shares_.MayStart(job.caller.claimant, job.device_seconds(), now)) {
        look_again_ = std::min(look_again_, now + absl::ToChronoNanoseconds(kLookAgain));
        lanes_->Forget(candidate.queued->id);  // jobs that need a pool do not have to wait for this one
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
  if (IsShort(staged.queued->job)) --short_waiting_;
  ShowDepth();
  Matched matched;
  const bool idle = lanes_->busy() == 0 && for_lane_.empty() && for_memory_.empty() && !first_.has_value() &&
                    ahead_ == 0 && ahead_for_pool_ == 0;
  matched.alone = !staged.queued->job.crowded && (idle || (kept && lanes_->busy_kept() == 0));
  matched.kept = kept;
  // Short jobs do not have to overtake each other. Besides, each stream that runs a program needs its own
  // graph.
  matched.urgent =
      kept && lanes_->busy_kept() < options_.lanes_kept && (options_.always_urgent || long_running_ > 0);
  Job& job = staged.queued->job;
  if (!IsShort(job)) {
    ++long_running_;
    lane_shares_.Start(job.caller.claimant, job.device_seconds());
  }
  const bool shared = !job.device.has_value() && job.plan->max_parts > 1 && lanes_->IsIdle(*device);
  matched.lane = lanes_->Take(*device, job.device_bytes(), kept);
  if (shared) {
    for (LaneRunner* const lane : lanes_->TakeIdle(job.plan->max_parts - 1, job.device_bytes())) {
      matched.helpers.push_back({.lane = lane, .load = {}, .running = {}});
    }
  }
  const double part_seconds = job.expected_seconds / static_cast<double>(1 + matched.helpers.size());
  for (Helper& helper : matched.helpers) helper.load = load_.Add(helper.lane->device(), part_seconds);
  if (job.load.empty()) job.load = load_.Add(*device, part_seconds);
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

}  // namespace warpline
