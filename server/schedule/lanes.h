// The lanes of all devices: which are free, and whose turn it is to have one.
#ifndef WARPLINE_SERVER_SCHEDULE_LANES_H_
#define WARPLINE_SERVER_SCHEDULE_LANES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/device/backend.h"
#include "server/observe/metrics.h"
#include "server/plan/plan.h"
#include "server/schedule/lane_runner.h"

namespace warpline {

// Some lanes of each device are kept for short jobs, which others may not take: whoever fills all lanes with
// long jobs would otherwise make everybody wait for the end of one.
//
// Of the devices with a free lane, and with as much left in their pools as the plan takes, the one with the
// fewest busy lanes is chosen, and equal ones in turn. The first job that has to wait for a pool is not
// passed by others that need one which could serve it: small ones that keep fitting would make it wait for
// ever.
//
// Not thread-safe.
class Lanes {
 public:
  struct Options {
    int per_device = 1;
    int kept = 0;  // of these, for short jobs
    absl::Duration spin;
  };
  static absl::StatusOr<std::unique_ptr<Lanes>> Create(const Options& options, Backend& backend,
                                                       Metrics& metrics);

  int size() const { return static_cast<int>(lanes_.size()); }
  int busy() const { return busy_; }
  // Of these, with jobs that may use the lanes that are kept.
  int busy_kept() const { return busy_kept_; }
  // The device on which the job may run now; nothing if there is none. `only` is the device where its
  // operands lie, if it matters; `kept` lets it use the lanes that are kept, too.
  std::optional<int> DeviceFor(std::uint64_t job, const Plan& plan, std::optional<int> only, bool kept);
  // A free lane of the device that DeviceFor has just named, and the plan's bytes of its pool. Lanes that
  // keep graphs for the plan are taken in turn, so that each of them has met every signature in time;
  // otherwise the one that ran last, which has the warmest caches and a thread that may still be awake.
  LaneRunner* Take(int device, const Plan& plan, bool kept);
  void GiveBack(LaneRunner* lane, const Plan& plan, bool kept);
  // The job does not wait any more.
  void Forget(std::uint64_t job);

 private:
  struct Device {
    std::deque<LaneRunner*> free;
    int lanes = 0;
    int ordinary = 0;                            // lanes that run jobs which may not use those that are kept
    std::size_t pool_bytes = 0, free_bytes = 0;  // of its pool: all, and what is left
    Gauge busy;
  };

  struct Waiting {
    std::uint64_t job;
    std::size_t bytes;
    std::optional<int> only;
  };

  // Devices whose pools could serve `but_for` do not count.
  std::optional<int> DeviceWith(std::size_t bytes, std::optional<int> only, bool kept,
                                const std::optional<Waiting>& but_for) const;
  bool CouldServe(int device, const Waiting& waiting) const {
    return waiting.only.value_or(device) == device &&
           devices_[static_cast<std::size_t>(device)].pool_bytes >= waiting.bytes;
  }
  void ShowBusy(Device& device);

  int kept_ = 0;
  std::vector<Device> devices_;
  std::size_t first_device_ = 0;  // the one that wins a tie
  std::optional<Waiting> first_for_pool_;
  int busy_ = 0, busy_kept_ = 0;
  std::vector<std::unique_ptr<LaneRunner>> lanes_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_LANES_H_
