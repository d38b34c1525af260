// The lanes of all devices: which ones are free, and which job may have one.
#ifndef WARPLINE_SERVER_SCHEDULE_LANES_H_
#define WARPLINE_SERVER_SCHEDULE_LANES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/device/backend.h"
#include "server/observe/metrics.h"
#include "server/schedule/lane_runner.h"

namespace warpline {

// Some lanes of each device are reserved for short jobs. Otherwise a client that fills all lanes with long
// jobs would make everybody wait until one of them ends.
//
// The device is chosen among those that have a free lane and enough bytes left in their pool: the one with
// the fewest busy lanes, and equal ones in turn. The first job that has to wait for a pool blocks other jobs
// from the pools that could serve it. Otherwise small jobs that keep fitting would make it wait forever.
//
// Not thread-safe.
class Lanes {
 public:
  struct Options {
    int per_device = 1;
    int kept = 0;  // how many of these are reserved for short jobs
    absl::Duration spin;
  };
  static absl::StatusOr<std::unique_ptr<Lanes>> Create(const Options& options, Backend& backend,
                                                       Metrics& metrics);

  int size() const { return static_cast<int>(lanes_.size()); }
  int busy() const { return busy_; }
  // Returns how many of the busy lanes run jobs that may use the reserved lanes.
  int busy_kept() const { return busy_kept_; }
  // Returns whether a lane is free for a job that may run on this device, or on any; `kept` is as in Wish.
  // Cheap, because it is asked for each waiting job.
  bool HasFree(std::optional<int> only, bool kept) const;
  // The needs of a job on a device.
  struct Wish {
    std::uint64_t job = 0;
    std::size_t pool_bytes = 0;
    std::optional<int> only;  // the device where its operands lie
    bool kept = false;        // the job may also use the reserved lanes
    bool whole_pool = false;  // the job can start only when nothing of the pool is in use
  };
  // Returns the device on which the job may run now; nothing if there is none.
  std::optional<int> DeviceFor(const Wish& wish);
  // Lets the job wait for a pool ahead of all other jobs that need one.
  void PutFirst(const Wish& wish) { first_for_pool_ = wish; }
  // Returns the size of the largest pool among the devices that the job may use.
  std::size_t LargestPool(std::optional<int> only) const;
  // Takes a free lane of the device that DeviceFor has just returned, and `pool_bytes` of its pool. This is
  // the lane that ran last: it has the warmest caches, the most graphs, and a thread that may still be awake.
  LaneRunner* Take(int device, std::size_t pool_bytes, bool kept);
  void GiveBack(LaneRunner* lane, std::size_t pool_bytes, bool kept);
  // Takes a lane of each idle device, at most `count`, with `pool_bytes` of each device's pool. One lane that
  // is not reserved stays free there, and so do pools that another job waits for.
  std::vector<LaneRunner*> TakeIdle(int count, std::size_t pool_bytes);
  // Returns whether no lane of the device is busy.
  bool IsIdle(int device) const {
    const Device& of = devices_[static_cast<std::size_t>(device)];
    return static_cast<int>(of.free.size()) == of.lanes;
  }
  // The job no longer waits.
  void Forget(std::uint64_t job);

 private:
  struct Device {
    std::vector<LaneRunner*> free;  // the lane that ran last is at the end
    int lanes = 0;
    int ordinary = 0;                            // lanes with jobs that may not use the reserved lanes
    std::size_t pool_bytes = 0, free_bytes = 0;  // of its pool: size and unused bytes
    Gauge busy;
  };

  // Like DeviceFor, but ignores devices whose pools could serve `but_for`.
  std::optional<int> DeviceWith(const Wish& wish, const std::optional<Wish>& but_for) const;
  // Returns whether a lane of the device is free for a job; `kept` is as in Wish.
  bool HasFree(const Device& device, bool kept) const {
    return !device.free.empty() && (kept || device.ordinary < device.lanes - kept_);
  }
  bool MayRunOn(int device, const Wish& wish) const { return wish.only.value_or(device) == device; }
  bool CouldServe(int device, const Wish& wish) const {
    return MayRunOn(device, wish) && devices_[static_cast<std::size_t>(device)].pool_bytes >= wish.pool_bytes;
  }
  // Returns whether the device's pool has the free bytes that the job needs.
  static bool HasBytes(const Device& device, const Wish& wish) {
    return wish.whole_pool ? device.free_bytes == device.pool_bytes : device.free_bytes >= wish.pool_bytes;
  }
  void ShowBusy(Device& device);

  int kept_ = 0;
  std::vector<Device> devices_;
  std::size_t first_device_ = 0;  // the one that wins a tie
  std::optional<Wish> first_for_pool_;
  int busy_ = 0, busy_kept_ = 0;
  std::vector<std::unique_ptr<LaneRunner>> lanes_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_LANES_H_
