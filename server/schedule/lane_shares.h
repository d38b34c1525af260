// Tracks which claimants use the lanes, and decides whether one may have another lane for a long job.
#ifndef WARPLINE_SERVER_SCHEDULE_LANE_SHARES_H_
#define WARPLINE_SERVER_SCHEDULE_LANE_SHARES_H_

#include <chrono>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "server/base/clock.h"
#include "server/base/owner.h"

namespace warpline {

// FairQueue decides who is next. LaneShares decides how many lanes a claimant may hold with jobs that are not
// short, because a lane cannot be taken back before its job ends:
// - One lane stays free for each share that is idle at the moment. Such a share has no job ready for a lane,
//   but a job of it is still being copied, or ended within the last second. A client that already has a lane
//   also leaves one to the idle clients of its own share. At most half of the lanes stay free. Each share may
//   always hold one lane, and a share that is alone may hold all.
// - The jobs of one share that run or are staged are limited to `seconds_max` of estimated device time in
//   total, or to a single job. More jobs would only share the device, and make all others wait longer.
// Not thread-safe.
class LaneShares {
 public:
  static constexpr std::chrono::seconds kMemory{1};
  struct Options {
    int lanes = 1;  // lanes for jobs that are not short, on all devices
    double seconds_max = std::numeric_limits<double>::infinity();
  };
  explicit LaneShares(const Options& options) : options_(options) {}

  // The events of a job that is not short. Arrive: it arrives. BecomeReady: it lacks only a lane. Leave: it
  // has ended, on a lane or before.
  void Arrive(const Claimant& claimant);
  void BecomeReady(const Claimant& claimant);
  void Leave(const Claimant& claimant, bool was_ready, MonotonicTime now);
  // The job's memory is allocated and filled before it has a lane, from this call until EndStaging.
  void Stage(const Claimant& claimant, double seconds);
  void EndStaging(const Claimant& claimant, double seconds);
  // Returns whether the job may be staged: whether its share's limit also leaves room for this job.
  bool MayStage(const Claimant& claimant, double seconds) const;
  // Start: the job gets a lane. End: it returns the lane. `seconds`: its estimated device time.
  void Start(const Claimant& claimant, double seconds);
  void End(const Claimant& claimant, double seconds);
  // Returns whether the claimant may now start a job that takes `seconds`. It has such a job.
  bool MayStart(const Claimant& claimant, double seconds, MonotonicTime now);

 private:
  struct ClientUse {
    int pending = 0;  // jobs that are not ready for a lane
    int ready = 0;    // jobs that wait for a lane, or have one
    int lanes = 0;
    MonotonicTime left;
  };
  struct ShareUse {
    int idle_clients = 0, busy_clients = 0;  // number of its clients in clients_: without and with ready jobs
    int lanes = 0;                           // lanes with jobs that are not short
    int staged = 0;                          // number of staged jobs
    double seconds = 0;                      // of the jobs on these lanes
    double staged_seconds = 0;
  };
  // Forgets clients that have had no job for kMemory.
  void Forget(MonotonicTime now);

  const Options options_;
  absl::flat_hash_map<OwnerId, ShareUse> shares_;
  absl::flat_hash_map<Claimant, ClientUse> clients_;
  int busy_lanes_ = 0;
  MonotonicTime next_look_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_LANE_SHARES_H_
