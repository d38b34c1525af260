// The lanes of all devices: which are free, and whose turn it is to have one.
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
  // Returns how many of the busy lanes have jobs that may use the lanes that are kept.
  int busy_kept() const { return busy_kept_; }
  // The demands of a job on a device.
  struct Wish {
    std::uint64_t job = 0;
    std::size_t pool_bytes = 0;
    std::optional<int> only;  // the device where its operands lie
    bool kept = false;        // it may use the lanes that are kept, too
    bool whole_pool = false;  // nobody else may have anything of the pool when it begins
  };
  // The device on which the job may run now; nothing if there is none.
  std::optional<int> DeviceFor(const Wish& wish);
  // The job waits for a pool before all others that need one.
  void PutFirst(const Wish& wish) { first_for_pool_ = wish; }
  // The most that the pool of a device has that the job may run on.
  std::size_t LargestPool(std::optional<int> only) const;
  // A free lane of the device that DeviceFor has just named, and so many bytes of its pool. It is the lane
  // that ran last, which has the warmest caches, the most graphs, and a thread that may still be awake.
  LaneRunner* Take(int device, std::size_t pool_bytes, bool kept);
  void GiveBack(LaneRunner* lane, std::size_t pool_bytes, bool kept);
  // The job does not wait any more.
  void Forget(std::uint64_t job);

 private:
  struct Device {
    std::vector<LaneRunner*> free;  // the one that ran last is the last
    int lanes = 0;
    int ordinary = 0;                            // lanes that run jobs which may not use those that are kept
    std::size_t pool_bytes = 0, free_bytes = 0;  // of its pool: all, and what is left
    Gauge busy;
  };

  // Devices whose pools could serve `but_for` do not count.
  std::optional<int> DeviceWith(const Wish& wish, const std::optional<Wish>& but_for) const;
  bool MayRunOn(int device, const Wish& wish) const { return wish.only.value_or(device) == device; }
  bool CouldServe(int device, const Wish& wish) const {
    return MayRunOn(device, wish) && devices_[static_cast<std::size_t>(device)].pool_bytes >= wish.pool_bytes;
  }
  // Returns whether the device's pool has the bytes that the job wishes for.
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
