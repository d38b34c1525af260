// Which claimants use the lanes, and whether one may have another lane for a long job.
#ifndef WARPLINE_SERVER_SCHEDULE_LANE_SHARES_H_
#define WARPLINE_SERVER_SCHEDULE_LANE_SHARES_H_

#include <chrono>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "server/base/clock.h"
#include "server/schedule/owner.h"

namespace warpline {

// FairQueue decides who is next. LaneShares decides how many lanes a claimant may hold with jobs that are not
// short, since nothing takes a lane back before its job ends:
// - One lane stays free for each share, and for each client of the same share, that has no such job now but
//   had one within the last second. A client that sends one job after the other finds a lane each time.
//   Everybody may hold one lane in any case, and a share that is alone may hold all.
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
  struct ClientUse {
    int jobs = 0;  // that have arrived
    MonotonicTime left;
  };
  struct ShareUse {
    int idle_clients = 0, busy_clients = 0;  // without and with jobs; those in clients_
    int lanes = 0;                           // with jobs that are not short
    double seconds = 0;                      // of these jobs
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
