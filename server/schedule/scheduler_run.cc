// The part of Scheduler that runs jobs which have a lane.
#include <algorithm>
#include <cstring>
#include <utility>

#include "server/schedule/scheduler.h"

namespace warpline {
namespace {

// The lane's thread launches larger programs: a program in many pieces takes several driver calls for each.
constexpr std::size_t kLaunchHereBytes = std::size_t{1} << 20;

// Returns whether the calling thread may wait for what it starts.
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

bool Scheduler::MayRunHere(const Matched& matched) const {
  const Job& job = matched.staged.queued->job;
  const Plan& plan = *job.plan;
  if (plan.memory.TravellingBytes() > 2 * kLaunchHereBytes) return false;
  if (job.find_sinks != nullptr && !backend_.HasResidentAtHand(matched.lane->device(), job.sink_bytes)) {
    return false;
  }
  if (!matched.helpers.empty()) return false;
  if (!matched.lane->lane().LaunchesAtOnce(plan.program, plan.memory, plan.compiled.get())) return false;
  // Only threads that have nothing else to do may wait for a device.
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
  if (!matched.helpers.empty()) return RunShared(std::move(matched), program);
  lane->lane().Launch(program, [this, launched, matched = std::move(matched)](LaunchReport report) mutable {
    OnLaunched(matched, launched, std::move(report));
  });
}

// Ends with the last of its parts.
struct Scheduler::Shared {
  explicit Shared(Matched job) : matched(std::move(job)), left(matched.helpers.size() + 1) {}

  Matched matched;
  const MonotonicTime launched = MonotonicClock::now();
  Mutex mutex;
  std::size_t left ABSL_GUARDED_BY(mutex);
  LaunchReport report ABSL_GUARDED_BY(mutex);
};

void Scheduler::RunShared(Matched matched, StagedProgram program) {
  const auto shared = std::make_shared<Shared>(std::move(matched));
  std::vector<LaneRunner*> lanes;
  const Job& job = shared->matched.staged.queued->job;
  for (Helper& helper : shared->matched.helpers) {
    lanes.push_back(helper.lane);
    if (options_.watchdog == nullptr) continue;
    helper.running = options_.watchdog->Started(helper.lane->device(), job.device_seconds());
  }
  lanes.push_back(shared->matched.lane);
  const auto end_part = [this, shared](LaunchReport report) {
    LaunchReport whole;
    {
      MutexLock lock(&shared->mutex);
      shared->report.status.Update(report.status);
      shared->report.shared |= report.shared;
      shared->report.pool_in_pieces |= report.pool_in_pieces;
      if (!report.variants.empty()) shared->report.variants = std::move(report.variants);
      if (--shared->left > 0) return;
      whole = std::move(shared->report);
    }
    OnLaunched(shared->matched, shared->launched, std::move(whole));
  };
  program.wait_briefly = false;
  program.parts = static_cast<int>(lanes.size());
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    program.part = static_cast<int>(i);
    // This thread launches the last part, after which the job may have ended.
    if (i + 1 == lanes.size()) return lanes[i]->lane().Launch(program, end_part);
    lanes[i]->Post([lane = lanes[i], program, end_part] { lane->lane().Launch(program, end_part); });
  }
}

void Scheduler::OnLaunched(Matched& matched, MonotonicTime launched, LaunchReport report) {
  const Use use(*this);
  if (options_.watchdog != nullptr) {
    options_.watchdog->Ended(matched.running);
    for (const Helper& helper : matched.helpers) options_.watchdog->Ended(helper.running);
  }
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
  result.peer_bytes = job.peer_bytes;
  result.output = std::move(matched.staged.slots.output);
  result.bindings = std::move(job.bindings);
  matched.staged.slots.input.Release();
  // Alone the job would have taken at most this time, so a shorter time is informative even if it was shared.
  const bool informs = job.peer_bytes == 0 && matched.helpers.empty() &&
                       (!report.shared || job.seconds.device < job.plan->alone.seconds());
  if (result.status.ok() && job.copied != nullptr) job.copied();
  if (result.status.ok() && informs) job.plan->alone.Measured(job.seconds.device);
  // The time of all devices that shared it.
  const double seconds = job.seconds.device * static_cast<double>(1 + matched.helpers.size());
  const double charged =
      std::min(seconds, ChargedSeconds(seconds, report.shared, job.plan->alone, job.plan->device_seconds) +
                            job.peer_seconds);
  if (options_.owner_metrics != nullptr) {
    options_.owner_metrics->Of(job.caller.owner).device_seconds.Add(charged);
  }
  job.load.End();
  for (Helper& helper : matched.helpers) helper.load.End();
  FreeLane(matched, job, charged);
  // First the answer, because a client waits for it; then other jobs, of which there may be many to start.
  Finish(std::move(job), std::move(result));
  Dispatch();
}

void Scheduler::PutBack(Matched& matched) {
  Queued& queued = *matched.staged.queued;
  Job& job = queued.job;
  FreeLane(matched, job, 0);
  // The memory for its results was found on this device, and its input lies in its slot.
  job.device = matched.lane->device();
  queued.since = MonotonicClock::now();
  const Claimant claimant = job.caller.claimant;
  const double cost = job.expected_seconds / job.weight;
  const JobId id = queued.id;
  const std::size_t line = LineOf(job);
  MutexLock lock(&mutex_);
  if (IsShort(job)) {
    ++short_waiting_;
  } else {
    lane_shares_.Arrive(claimant);
    lane_shares_.BecomeReady(claimant);
  }
  if (matched.staged.copied) for_memory_.Charge(claimant, cost);  // FreeLane has refunded this cost
  GoAhead(job);
  lanes_->PutFirst({.job = id, .pool_bytes = job.device_bytes(), .only = job.device, .whole_pool = true});
  for_lane_.PutBack(claimant, cost, id,
                    {.queued = std::move(matched.staged.queued), .slots = std::move(matched.staged.slots)},
                    line);
  ShowDepth();
}

void Scheduler::FreeLane(const Matched& matched, const Job& job, double seconds) {
  MutexLock lock(&mutex_);
  const double difference = (seconds - job.expected_seconds) / job.weight;
  for_lane_.Charge(job.caller.claimant, difference);
  if (matched.staged.copied) for_memory_.Charge(job.caller.claimant, difference);
  lanes_->GiveBack(matched.lane, job.device_bytes(), matched.kept);
  for (const Helper& helper : matched.helpers) {
    lanes_->GiveBack(helper.lane, job.device_bytes(), /*kept=*/false);
  }
  if (!IsShort(job)) {
    --long_running_;
    lane_shares_.End(job.caller.claimant, job.device_seconds());
    lane_shares_.Leave(job.caller.claimant, /*was_ready=*/true, MonotonicClock::now());
    refused_after_.reset();  // a job of the same share may now be staged
  }
}

}  // namespace warpline
