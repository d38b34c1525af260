// Which claimants use the lanes, and whether one may have another lane for a long job.
#ifndef WARPLINE_SERVER_SCHEDULE_LANE_SHARES_H_
#define WARPLINE_SERVER_SCHEDULE_LANE_SHARES_H_

#include <chrono>
#include <cstddef>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "server/base/clock.h"
#include "server/schedule/owner.h"

namespace warpline {

// FairQueue decides who is next. This decides how many lanes a claimant may hold with jobs that are not
// short, since nothing takes a lane back before its job ends:
// - A share that is alone may hold all lanes. Beside others it leaves one lane to each of them, and each
// client
//   leaves one to each other client of its share. Which of them gets a lane that becomes free is for
//   FairQueue to say, which knows weights and device time. Everybody may hold one lane in any case. Others
//   count while they have such jobs and for one second more, so that somebody who sends one job after the
//   other finds a lane each time.
// - The jobs of one share that run at a time may take `seconds_max` of estimated device time together, or be
// a
//   single one. More would only share the device among each other, and make everybody else wait longer.
// Not thread-safe.
class LaneShares {
 public:
  static constexpr std::chrono::seconds kMemory{1};
  struct Options {
    int lanes = 1;  // those for jobs that are not short, of all devices
    double seconds_max = std::numeric_limits<double>::infinity();
  };
  explicit LaneShares(const Options& options) : options_(options) {}

  // A job that is not short comes, and is done with: it has ended, on a lane or before it had one.
  void Arrive(const Claimant& claimant);
  void Leave(const Claimant& claimant, MonotonicTime now);
  // The job gets a lane, and gives it back. `seconds`: its estimated device time.
  void Start(const Claimant& claimant, double seconds);
  void End(const Claimant& claimant, double seconds);
  // Whether the claimant, which has a job, may start one that takes so long.
  bool MayStart(const Claimant& claimant, double seconds, MonotonicTime now);

 private:
  struct Use {
    int jobs = 0;   // that have arrived
    int lanes = 0;  // with jobs that are not short
    MonotonicTime left;
  };
  struct ShareUse {
    std::size_t clients = 0;  // that are in clients_
    int lanes = 0;
    double seconds = 0;  // of jobs on these lanes
  };
  // Of those that have had no job for a while.
  void Forget(MonotonicTime now);

  const Options options_;
  absl::flat_hash_map<OwnerId, ShareUse> shares_;
  absl::flat_hash_map<Claimant, Use> clients_;
  MonotonicTime next_look_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_LANE_SHARES_H_
