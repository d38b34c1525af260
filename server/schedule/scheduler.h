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
#include "server/schedule/device_load.h"
#include "server/schedule/fair_queue.h"
#include "server/schedule/job.h"
#include "server/schedule/lane_shares.h"
#include "server/schedule/lanes.h"

namespace warpline {

// A small job waits for a lane and takes its slots when it gets one. The thread that found the lane copies
// the job in, launches it and also waits for its end. Without load this is the thread that received the
// request, and it answers without any other thread. Under load, the lanes' own threads run one job after the
// other. A large job waits for memory first, is copied into it by the workers, and only then waits for a
// lane. So neither a slow copy nor a wait for memory occupies a lane. Both waits serve the owners in fair
// shares of the plans' estimated cost, and the jobs of one owner in the order of arrival.
//
// A large job that finds no memory lets others pass. The one that has waited longest may reserve memory that
// running jobs will return (StagingPool::Claim). Small jobs have their own memory. They never wait for large
// jobs, nor for results that clients have not read.
//
// A program that does not fit into a lane's own memory uses some of its device's pool while it runs
// (Plan::device_bytes), and so do copies of operands that lie on other devices. Such a job is matched only
// with a device whose pool has enough bytes left. The first job that has to wait for a pool is not passed by
// others that need a pool; those that need none do pass.
//
// A large job that can be cut and that finds several devices idle runs on all of them, each with its own link
// to the host (Plan::max_parts). It counts as a job of the first.
//
// Some lanes are reserved for short jobs, and the kernels of that many short jobs have priority over those of
// long jobs. So short jobs neither wait for a long job to end nor behind long kernels that were launched
// earlier. More short jobs with priority would leave nothing to a running long job. LaneShares limits how
// many of the other lanes a claimant may hold.
//
// A job that is cancelled or past its deadline is never started. If it already runs, it is finished, and
// whoever waits for it drops its result.
//
// A job that finds its pool fragmented goes back to its place, with its memory, and waits once until the pool
// is unused. A job that needs more than the pool of the device that has its operands is refused.
//
// Thread-safe. Outlives its jobs: destroy it only when none is left (Admission::AwaitIdle). The backend, the
// pool and the workers outlive the scheduler.
class Scheduler {
 public:
  struct Options {
    int lanes_per_device = 1;
    int lanes_kept = 0;  // how many of these are reserved for short jobs
    // Jobs on reserved lanes are always urgent, not only beside long jobs: they have their own
    // multiprocessors.
    bool always_urgent = false;
    // A job is short if it is within both limits: estimated device time, and bytes that are copied to the
    // device and back.
    double short_seconds = 100e-6;
    std::size_t short_bytes = std::size_t{2} << 20;
    // The limit of estimated seconds of one share, on all devices together; see LaneShares.
    double running_seconds_max = std::numeric_limits<double>::infinity();
    // A job is small if its inputs have at most this many bytes, and its outputs too.
    std::size_t small_bytes = StagingPool::kTinySlotBytes;
    // How long a lane's thread polls for another job before it sleeps.
    absl::Duration spin;
    // Gives the owners' weights: costs are divided by the weight.
    LimitsOf limits_of = nullptr;
    OwnerMetrics* owner_metrics = nullptr;  // null if there are no identities
    // Is told when a job starts or ends on a device. May be null. Outlives the scheduler.
    DeviceWatchdog* watchdog = nullptr;
  };
  using JobId = std::uint64_t;

  static absl::StatusOr<std::unique_ptr<Scheduler>> Create(const Options& options, Backend& backend,
                                                           StagingPool& pool, WorkerPool& workers,
                                                           Metrics& metrics);
  ~Scheduler();

  // Takes over the job. Its `done` may be called before Submit returns.
  JobId Submit(Job job);
  // Ends the job with `why` if it is still waiting; otherwise does nothing.
  void Cancel(JobId id, const absl::Status& why);
  // Returns whether any job has a lane.
  bool IsBusy();
  const DeviceLoad& load() const { return load_; }

 private:
  // These types are the stages of a job in the scheduler: each stage is made from the previous one.
  struct Queued {
    JobId id = 0;
    Job job;
    MonotonicTime since;
    // The job has found its pool fragmented, and waits until nothing else of the pool is in use.
    bool whole_pool = false;
    [[no_unique_address]] nvtx::SpanningRange queued, on_device;
  };
  struct Staged {  // has memory
    std::unique_ptr<Queued> queued;
    StagingPool::Pair slots;
    bool copied = false;  // a large job's payload is already in the input slot
  };
  // The lane of another device that runs a part of the program.
  struct Helper {
    LaneRunner* lane = nullptr;
    DeviceLoad::Part load;
    DeviceWatchdog::Token running;
  };
  struct Matched {  // has a lane
    Staged staged;
    LaneRunner* lane = nullptr;
    std::vector<Helper> helpers;  // with which it shares the program
    bool kept = false;            // may use the reserved lanes
    bool alone = false;           // nothing else runs or waits; a short job ignores long jobs here
    bool urgent = false;          // see StagedProgram
    DeviceWatchdog::Token running;
    RunningRequest request;
  };
  struct Copying;  // workers are writing its payload
  struct Shared;   // several devices share its program
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
  // Counts a thread that may use the scheduler after it has ended a job, perhaps the last one.
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
  // Returns the next job that has all it needs for its next step.
  std::optional<Matched> TakeMatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Staged> TakeForMemory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int& AheadOf(const Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return job.device_bytes() > 0 ? ahead_for_pool_ : IsShort(job) ? ahead_short_ : ahead_;
  }
  // The line of the job's claimant in which it waits: a job for the lanes or the pool of one device does not
  // hold up those for others.
  static std::size_t LineOf(const Job& job) {
    return 2 * (job.device.has_value() ? static_cast<std::size_t>(*job.device) + 1 : 0) +
           (job.device_bytes() > 0 ? 1 : 0);
  }
  void GoAhead(const Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoLongerAhead(const Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShowDepth() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lets every job that can do its next step do it. Called when a job arrives, or a lane or slot becomes
  // free. If a job ends as soon as it starts, this is called again from within; the inner call returns at
  // once, because the outer one continues anyway.
  void Dispatch();
  // The loop of release_thread_: dispatches when staging memory has been returned, or when look_again_ is
  // reached. gRPC releases slots wherever it drops a slice, perhaps with locks held. Jobs must not be
  // launched or answered on that thread, so OnRelease only wakes this one.
  void DispatchOnRelease();
  void OnRelease();
  void StartCopying(Staged staged);
  void OnCopied(Copying& copying);
  // Runs the job on this thread if that takes little time and the thread may wait; otherwise on its lane's
  // thread.
  void Start(Matched matched);
  bool MayRunHere(const Matched& matched) const;
  void Run(Matched& matched);
  void RunShared(Matched matched, StagedProgram program);
  void OnLaunched(Matched& matched, MonotonicTime launched, LaunchReport report);
  // Lets a job whose device has a fragmented pool wait at its old place.
  void PutBack(Matched& matched);
  // Frees the lane of a matched job, and charges `seconds` of device time to its owner.
  void FreeLane(const Matched& matched, const Job& job, double seconds);
  // Ends a job that never had a lane.
  void Withdraw(Job job, bool was_ready, absl::Status why);

  const Options options_;
  Backend& backend_;
  StagingPool& pool_;
  WorkerPool& workers_;
  Metrics& metrics_;
  DeviceLoad load_;
  Mutex mutex_;
  JobId next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  FairQueue<std::unique_ptr<Queued>> for_memory_ ABSL_GUARDED_BY(mutex_);  // large jobs
  std::optional<First> first_ ABSL_GUARDED_BY(mutex_);                     // taken from for_memory_
  FairQueue<Ready> for_lane_ ABSL_GUARDED_BY(mutex_);
  int short_waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // short jobs in for_lane_
  int long_running_ ABSL_GUARDED_BY(mutex_) = 0;   // jobs with a lane that are not short
  LaneShares lane_shares_ ABSL_GUARDED_BY(mutex_);
  // When to look again at jobs that LaneShares holds back: they may be allowed to start as time passes.
  MonotonicTime look_again_ ABSL_GUARDED_BY(mutex_) = kNever;
  // Large jobs that have memory but no lane yet: those that also wait for a device's pool, which may take
  // longer; short ones, which do not wait for others; and the rest. Each number is limited by the number of
  // lanes, because more would only take memory from jobs whose turn comes first.
  int ahead_for_pool_ ABSL_GUARDED_BY(mutex_) = 0;
  int ahead_short_ ABSL_GUARDED_BY(mutex_) = 0;
  int ahead_ ABSL_GUARDED_BY(mutex_) = 0;
  bool starved_ ABSL_GUARDED_BY(mutex_) = false;  // some job waits for memory and nothing else
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
  // The value of pool_.returns() when no job could be given memory last. Reset when anything else changes
  // that this depends on.
  std::optional<std::uint64_t> refused_after_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<int> uses_ = 0;
  const std::unique_ptr<Lanes> lanes_ ABSL_PT_GUARDED_BY(mutex_);
  std::thread release_thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_SCHEDULER_H_
