// Where an admitted job meets a free lane and staging memory.
#ifndef WARPLINE_SERVER_SCHEDULE_SCHEDULER_H_
#define WARPLINE_SERVER_SCHEDULE_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "server/base/mutex.h"
#include "server/device/backend.h"
#include "server/device/watchdog.h"
#include "server/memory/staging_pool.h"
#include "server/observe/metrics.h"
#include "server/observe/nvtx.h"
#include "server/schedule/job.h"
#include "server/schedule/lane_runner.h"

namespace warpline {

// Jobs start in the order of their arrival, except that one whose staging memory is not free yet lets those
// behind it pass: a client that does not read its responses must not stop the others. After so many have
// passed, nothing more starts for a moment, so that the memory of running jobs comes together for the oldest;
// if that did not help, what it waits for is held by clients, and others pass again. Of the devices with a
// free lane the one with the fewest busy lanes is taken, equal ones and their lanes in turn, so that every
// lane's graph cache becomes warm.
//
// A job that is cancelled or past its deadline is never started; one that runs already is finished and its
// result dropped by whoever waits for it.
//
// Thread-safe. Outlives its jobs: destroy it only when none is left (Admission::AwaitIdle).
class Scheduler {
 public:
  struct Options {
    int lanes_per_device = 1;
    // Inputs up to this size are staged and launched by the thread that found the lane, larger ones by the
    // lane's own thread. Backends that launch synchronously always use the lane's thread.
    std::size_t inline_stage_bytes = 128 << 10;
    // Jobs that may start before the oldest one that waits for memory, and for how long none starts then.
    int max_passes = 256;
    absl::Duration block = absl::Milliseconds(200);
    // Told of every job that starts and ends on a device. May be null. Outlives the scheduler.
    DeviceWatchdog* watchdog = nullptr;
  };
  using JobId = std::uint64_t;

  static absl::StatusOr<std::unique_ptr<Scheduler>> Create(const Options& options, Backend& backend,
                                                           StagingPool& pool, Metrics& metrics);
  ~Scheduler();

  // Takes the job over; its `done` may be called before Submit returns.
  JobId Submit(Job job);
  // Ends the job with `why` if it still waits; otherwise does nothing.
  void Cancel(JobId id, const absl::Status& why);

 private:
  struct Waiting {
    JobId id;
    Job job;
    absl::Time since;
    int passed = 0;  // by later jobs
    [[no_unique_address]] nvtx::SpanningRange queued, on_device;
  };
  struct Device {
    std::deque<LaneRunner*> free;
    int lanes = 0;
    Gauge busy;
  };
  struct Match;

  Scheduler(const Options& options, Backend& backend, StagingPool& pool, Metrics& metrics);
  // The next job that can start now, with all it needs.
  std::optional<Match> TakeMatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts all that can start. Called when a job, a lane or a slot has come. A job that ends as soon as it
  // starts comes back here; that call returns at once, as the outer one goes on anyway.
  void Dispatch();
  // Dispatches when staging memory has come back. Slots are released inside gRPC, from wherever it drops a
  // slice, perhaps with locks held: no place to launch a job or to answer one.
  void DispatchOnRelease();
  // Whether nothing may start before the oldest job, which finds no memory. Starts the time of that, which
  // DispatchOnRelease ends.
  bool IsBlockedBy(const Waiting& oldest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnRelease();
  void Start(Match match);
  void RunJob(Match& match);
  void ReleaseLane(LaneRunner* lane);

  const Options options_;
  Backend& backend_;
  StagingPool& pool_;
  Metrics& metrics_;
  Mutex mutex_;
  JobId next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::list<Waiting> queue_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<JobId, std::list<Waiting>::iterator> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<Device> devices_ ABSL_GUARDED_BY(mutex_);
  std::size_t first_device_ ABSL_GUARDED_BY(mutex_) = 0;  // the one that wins a tie
  // The oldest jobs wait for memory, not for a lane.
  bool starved_ ABSL_GUARDED_BY(mutex_) = false;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
  // Until when the oldest job, which then exists, lets no other pass; InfiniteFuture: they may.
  absl::Time blocked_until_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<LaneRunner>> lanes_;
  std::thread release_thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_SCHEDULER_H_
