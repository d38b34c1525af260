// Matches each admitted job with staging memory and a free lane.
#ifndef WARPLINE_SERVER_SCHEDULE_SCHEDULER_H_
#define WARPLINE_SERVER_SCHEDULE_SCHEDULER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "server/base/mutex.h"
#include "server/base/owner_limits.h"
#include "server/base/worker_pool.h"
#include "server/device/backend.h"
#include "server/device/watchdog.h"
#include "server/memory/staging_pool.h"
#include "server/observe/crash_report.h"
#include "server/observe/metrics.h"
#include "server/observe/nvtx.h"
#include "server/observe/owner_metrics.h"
#include "server/schedule/fair_queue.h"
#include "server/schedule/job.h"
#include "server/schedule/lane_shares.h"
#include "server/schedule/lanes.h"

namespace warpline {

// A small job waits for a lane, takes its slots when it gets one, and is copied in and launched by the thread
// that found the lane, which also waits for its end: alone, that is the thread that received the request,
// which answers it without any other thread; under load, the lanes' own threads take one job after the other.
// A large job waits for memory first, is copied into it by the workers, and waits for a lane only then, so
// that neither a slow copy nor a wait for memory occupies one. Both waits serve the owners in fair shares of
// the plans' estimated cost, and the jobs of one owner in the order of their arrival.
//
// A large job that finds no memory lets others pass; the one that waits longest may set memory aside that
// running jobs will return (StagingPool::Claim). Small jobs have memory of their own and never wait for large
// ones, nor for results that clients do not read.
//
// A program that does not fit into a lane's own memory takes some of its device's pool while it runs
// (Plan::device_bytes), and so do copies of operands that lie on other devices. Such a job is matched only
// with a device whose pool has so much left. The first job that has to wait for this is not passed by others
// that need a pool; those that need none do pass.
//
// Some lanes are kept for short jobs, and the kernels of as many of these go before those of long ones: so
// they wait neither for the end of a long job nor behind long kernels that were launched before. More than
// that would leave nothing to a long job that runs already. How many of the other lanes a claimant may hold
// is up to LaneShares.
//
// A job that is cancelled or past its deadline is never started. One that runs already is finished and its
// result dropped by whoever waits for it.
//
// A job that meets a pool in pieces goes back to its place, with its memory, and waits until the pool is
// whole, once. One whose program no device can ever hold that has its operands is refused.
//
// Thread-safe. Outlives its jobs: destroy it only when none is left (Admission::AwaitIdle). The backend, the
// pool and the workers outlive the scheduler.
class Scheduler {
 public:
  struct Options {
    int lanes_per_device = 1;
    int lanes_kept = 0;  // of these, for short jobs
    // Jobs on lanes that are kept are urgent always, not only beside long ones: they have multiprocessors of
    // their own.
    bool always_urgent = false;
    // A job is short within both limits: the device time, by estimate, and the bytes that travel to the
    // device and back.
    double short_seconds = 100e-6;
    std::size_t short_bytes = std::size_t{2} << 20;
    // The limit of one share, on all devices together; see LaneShares.
    double running_seconds_max = std::numeric_limits<double>::infinity();
    // Jobs whose inputs and whose outputs have at most so many bytes are small.
    std::size_t small_bytes = StagingPool::kTinySlotBytes;
    // How long a lane's thread looks for another job before it sleeps.
    absl::Duration spin;
    // Costs count divided by their owner's weight.
    LimitsOf limits_of = nullptr;
    OwnerMetrics* owner_metrics = nullptr;  // null where there are no identities
    // Told of every job that starts and ends on a device. May be null. Outlives the scheduler.
    DeviceWatchdog* watchdog = nullptr;
  };
  using JobId = std::uint64_t;

  static absl::StatusOr<std::unique_ptr<Scheduler>> Create(const Options& options, Backend& backend,
                                                           StagingPool& pool, WorkerPool& workers,
                                                           Metrics& metrics);
  ~Scheduler();

  // Takes the job over; its `done` may be called before Submit returns.
  JobId Submit(Job job);
  // Ends the job with `why` if it still waits; otherwise does nothing.
  void Cancel(JobId id, const absl::Status& why);
  // Returns whether a job has a lane.
  bool IsBusy();

 private:
  // These types are the stages of a job here: each step takes the type of the previous step.
  struct Queued {
    JobId id = 0;
    Job job;
    MonotonicTime since;
    // It has met a pool in pieces, and waits until nothing else of the pool is taken.
    bool whole_pool = false;
    [[no_unique_address]] nvtx::SpanningRange queued, on_device;
  };
  struct Staged {  // has memory
    std::unique_ptr<Queued> queued;
    StagingPool::Pair slots;
    bool copied = false;  // large jobs' payloads lie in the input slot already
  };
  struct Matched {  // has a lane
    Staged staged;
    LaneRunner* lane = nullptr;
    bool kept = false;    // may use the lanes that are kept
    bool alone = false;   // nothing else runs or waits, but long jobs beside a short one
    bool urgent = false;  // as of StagedProgram
    DeviceWatchdog::Token running;
    RunningRequest request;
  };
  struct Copying;  // has its payload written by workers
  // Waits for a lane; small jobs have no memory yet.
  struct Ready {
    std::unique_ptr<Queued> queued;
    std::optional<StagingPool::Pair> slots;
  };
  // The large job that has waited longest for memory.
  struct First {
    First(std::unique_ptr<Queued> job, StagingPool& pool)
        : queued(std::move(job)),
          claim(pool, queued->job.plan->memory.input_bytes, queued->job.plan->memory.output_bytes) {}
    std::unique_ptr<Queued> queued;
    StagingPool::Claim claim;
  };
  // A thread that may use the scheduler after it has ended a job, perhaps the last one.
  class Use {
   public:
    explicit Use(Scheduler& scheduler) : uses_(scheduler.uses_) {
      uses_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Use() { uses_.fetch_sub(1, std::memory_order_release); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    std::atomic<int>& uses_;
  };
  Scheduler(const Options& options, Backend& backend, StagingPool& pool, WorkerPool& workers,
            Metrics& metrics, std::unique_ptr<Lanes> lanes);
  bool IsSmall(const Plan& plan) const {
    return plan.memory.input_bytes <= options_.small_bytes &&
           plan.memory.output_bytes <= options_.small_bytes;
  }
  bool IsShort(const Job& job) const {
    return job.device_seconds() <= options_.short_seconds &&
           job.plan->memory.TravellingBytes() <= options_.short_bytes;
  }
  // The next job that can do its next step now, with all it needs for that.
  std::optional<Matched> TakeMatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Staged> TakeForMemory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int& AheadOf(const Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return job.device_bytes() > 0 ? ahead_for_pool_ : IsShort(job) ? ahead_short_ : ahead_;
  }
  void GoAhead(const Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoLongerAhead(const Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShowDepth() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lets all jobs do their next step that can. Called when a job, a lane or a slot has come. A job that ends
  // as soon as it starts comes back here; that call returns at once, as the outer one goes on anyway.
  void Dispatch();
  // Dispatches when staging memory has come back. Slots are released inside gRPC, from wherever it drops a
  // slice, perhaps with locks held: no place to launch a job or to answer one.
  void DispatchOnRelease();
  void OnRelease();
  void StartCopying(Staged staged);
  void OnCopied(Copying& copying);
  // Runs the job here if that takes little time and this thread has some, else on its lane's thread.
  void Start(Matched matched);
  bool MayRunHere(const Matched& matched) const;
  void Run(Matched& matched);
  void OnLaunched(Matched& matched, MonotonicTime launched, LaunchReport report);
  // Lets a job whose device has its pool in pieces wait at its place.
  void PutBack(Matched& matched);
  // Frees the lane of the job that has been matched. The job's owner is charged `seconds` of device time.
  void FreeLane(const Matched& matched, const Job& job, double seconds);
  // Ends a job that never had a lane.
  void Withdraw(Job job, bool was_ready, absl::Status why);

  const Options options_;
  Backend& backend_;
  StagingPool& pool_;
  WorkerPool& workers_;
  Metrics& metrics_;
  Mutex mutex_;
  JobId next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  FairQueue<std::unique_ptr<Queued>> for_memory_ ABSL_GUARDED_BY(mutex_);  // large jobs
  std::optional<First> first_ ABSL_GUARDED_BY(mutex_);                     // was taken from for_memory_
  FairQueue<Ready> for_lane_ ABSL_GUARDED_BY(mutex_);
  int long_running_ ABSL_GUARDED_BY(mutex_) = 0;  // jobs with a lane that are not short
  LaneShares lane_shares_ ABSL_GUARDED_BY(mutex_);
  // When jobs are looked at again that LaneShares holds back: time may let them go on.
  MonotonicTime look_again_ ABSL_GUARDED_BY(mutex_) = kNever;
  // Large jobs that have memory and no lane yet: those that also wait for a device's pool, which may take
  // longer, short ones, which need not wait for others, and the rest. Each number is bounded by the lanes:
  // more would only take memory from those whose turn comes first.
  int ahead_for_pool_ ABSL_GUARDED_BY(mutex_) = 0;
  int ahead_short_ ABSL_GUARDED_BY(mutex_) = 0;
  int ahead_ ABSL_GUARDED_BY(mutex_) = 0;
  bool starved_ ABSL_GUARDED_BY(mutex_) = false;  // some job waits for memory and for nothing else
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
  // The pool's count of returns when last no job could be given memory, unless something else that this
  // depends on has changed since.
  std::optional<std::uint64_t> refused_after_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<int> uses_ = 0;
  const std::unique_ptr<Lanes> lanes_ ABSL_PT_GUARDED_BY(mutex_);
  std::thread release_thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_SCHEDULER_H_
