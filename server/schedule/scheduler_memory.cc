// The part of the scheduler in which large jobs wait for memory and are copied into it.
#include <algorithm>
#include <atomic>
#include <utility>

#include "server/schedule/scheduler.h"

namespace warpline {
namespace {

// A worker copies about 10 GB/s. Parts of this size keep several workers busy and cost little to hand out.
constexpr std::size_t kCopyPartBytes = std::size_t{2} << 20;
// Up to this size copying is faster than handing the work to another thread and back.
constexpr std::size_t kCopyHereBytes = std::size_t{256} << 10;
}  // namespace

// Shared by the tasks of one job's copy. The last task to end continues with the job.
struct Scheduler::Copying {
  Staged staged;
  MonotonicTime since;
  std::atomic<int> left = 0;
};

std::optional<Scheduler::Staged> Scheduler::TakeForMemory() {
  if (for_memory_.empty() && !first_.has_value()) return std::nullopt;
  const std::uint64_t returns = pool_.returns();
  if (refused_after_ == returns) {  // it would be refused again; every small job comes through here
    starved_ = starved_ || first_.has_value();
    return std::nullopt;
  }
  const auto has_place = [this](const Job& job) { return AheadOf(job) < lanes_->size(); };
  const auto may_go_ahead = [&](const std::unique_ptr<Queued>& queued) {
    const Job& job = queued->job;
    if (!has_place(job)) return false;
    return IsShort(job) || lane_shares_.MayStage(job.caller.claimant, job.device_seconds());
  };
  std::optional<Staged> staged;
  if (first_.has_value() && has_place(first_->queued->job)) {
    if (auto slots = first_->claim.TryTake(); slots.has_value()) {
      staged.emplace(Staged{.queued = std::move(first_->queued), .slots = *std::move(slots)});
      first_.reset();
    }
  }
  if (!staged.has_value()) {
    std::optional<StagingPool::Pair> slots;
    auto queued = for_memory_.TakeFirst([&](const std::unique_ptr<Queued>& candidate) {
      if (!may_go_ahead(candidate)) return false;
      const MemoryPlan& memory = candidate->job.plan->memory;
      slots = pool_.TryAcquire(memory.input_bytes, memory.output_bytes);
      return slots.has_value();
    });
    if (queued.has_value()) staged.emplace(Staged{.queued = *std::move(queued), .slots = *std::move(slots)});
  }
  if (!staged.has_value() && !first_.has_value()) {
    if (auto queued = for_memory_.TakeFirst(may_go_ahead); queued.has_value()) {
      first_.emplace(*std::move(queued), pool_);
      // The claim may succeed at once, with memory that only a claim can use.
      if (auto slots = first_->claim.TryTake(); slots.has_value()) {
        staged.emplace(Staged{.queued = std::move(first_->queued), .slots = *std::move(slots)});
        first_.reset();
      }
    }
  }
  if (staged.has_value()) {
    GoAhead(staged->queued->job);
    ShowDepth();
    return staged;
  }
  starved_ = starved_ || first_.has_value();
  refused_after_ = returns;
  return std::nullopt;
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
    const Claimant claimant = job.caller.claimant;
    const double cost = job.expected_seconds / job.weight;
    const JobId id = staged.queued->id;
    MutexLock lock(&mutex_);
    const std::size_t line = LineOf(job);
    if (IsShort(job)) {
      ++short_waiting_;
    } else {
      lane_shares_.BecomeReady(claimant);
    }
    for_lane_.Push(claimant, cost, id, {.queued = std::move(staged.queued), .slots = std::move(staged.slots)},
                   line);
    ShowDepth();
  } else {
    {
      MutexLock lock(&mutex_);
      NoLongerAhead(job);
    }
    staged.slots = {};
    Withdraw(std::move(job), /*was_ready=*/false, std::move(alive));
  }
  Dispatch();
}

}  // namespace warpline
