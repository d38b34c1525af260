// Replicas: copies of tensors on other devices than their own.
#ifndef WARPLINE_SERVER_STORE_REPLICAS_H_
#define WARPLINE_SERVER_STORE_REPLICAS_H_

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "server/base/mutex.h"
#include "server/memory/buffer.h"
#include "server/observe/metrics.h"

namespace warpline {

// Every tensor has one home, the device where it was made. A complete tensor never changes, so a copy of it
// on another device stays valid for as long as the tensor lives. Replicas are only a cache. They are charged
// to nobody and renewed by nobody. When a device has no room, they are given up first, beginning with the one
// that has not been used for longest. A replica that a job uses is given up when the job has ended.
//
// Tensors are known by the memory of their home. A job keeps the homes of its operands, so their addresses
// cannot be taken by other tensors meanwhile. All memory for tensors comes from Allocate here, and a tensor's
// replicas end when this memory is freed.
//
// Thread-safe. Outlives everything that it returns.
class Replicas {
 public:
  // Allocates memory on a device, as Backend::AllocateResident does.
  using AllocateMemory = std::function<absl::StatusOr<Buffer>(int device, std::size_t bytes)>;
  using Devices = absl::InlinedVector<int, 8>;

  // `device_bytes`: how much memory of each device all replicas together may take.
  Replicas(const std::vector<std::size_t>& device_bytes, AllocateMemory allocate, Metrics& metrics);
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  // Returns memory for a tensor that has its home on this device. Gives up replicas if there is no room
  // otherwise. Errors are those of the backend.
  absl::StatusOr<Buffer> Allocate(int device, std::size_t bytes);

  // Returns the devices that have a replica of the tensor.
  Devices DevicesOf(const Buffer& home) const;
  // Returns the replica on this device; an empty buffer if there is none.
  Buffer Find(const Buffer& home, int device);

  // Memory for a replica that is being made. If it is destroyed before Complete, there will be no replica.
  class Making {
   public:
    Making(Making&& other) noexcept;
    Making& operator=(Making&&) = delete;
    ~Making();
    // Keeps the memory of the home too.
    Buffer memory() const;
    // The memory has the bytes of the tensor: from now on the replica is found.
    void Complete();

   private:
    friend class Replicas;
    struct Memory;
    Making(Replicas& replicas, Buffer home, int device, std::shared_ptr<Memory> memory);
    Replicas* replicas_;
    Buffer home_;
    int device_;
    std::shared_ptr<Memory> memory_;
  };
  // Returns whether Make is worth a try: the device has no replica of the tensor, nobody makes one, and it
  // would not be too large.
  bool MayMake(const Buffer& home, int device) const;
  // Begins a replica of a complete tensor. Returns nothing if there is no room, or if there is one already
  // or somebody else is making it. May take milliseconds if the device has no memory at hand.
  std::optional<Making> Make(const Buffer& home, int device);

  // Asks whether a job should leave the home of this tensor: true the second time in a row that `better` is
  // true. So a short queue causes no copy.
  bool ShouldLeave(const Buffer& home, bool better);

 private:
  using Memory = Making::Memory;
  // Homes in the order in which their replicas on one device were last used.
  using Order = std::list<const std::byte*>;
  struct Replica {
    int device = 0;
    std::shared_ptr<Memory> memory;  // null while it is being made
    Order::iterator place;           // in the order of its device, once it is complete
  };
  struct Tensor {
    absl::InlinedVector<Replica, 1> replicas;
    bool should_leave = false;  // the last call of ShouldLeave had `better`
  };
  struct Device {
    std::size_t bytes = 0, used_bytes = 0;
    Order order;
  };

  static Buffer WithHome(const Buffer& home, int device, std::shared_ptr<Memory> memory);
  Replica* FindReplica(const std::byte* home, int device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool CouldMake(const Buffer& home, int device) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes an entry. Returns its memory, which must be freed after the lock is released.
  std::shared_ptr<Memory> Remove(const std::byte* home, int device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends all replicas of a tensor whose memory is about to be freed.
  void Forget(const std::byte* home);
  // Gives up replicas that nobody uses, the oldest first, until they have `bytes` bytes together. Returns
  // false if there are none, or if `enough` is set and they have less.
  bool GiveUp(int device, std::size_t bytes, bool enough);
  // Counts bytes of a new replica. Returns by how many bytes the limit of all replicas on the device is too
  // small; 0 if they are counted now.
  std::size_t Reserve(int device, std::size_t bytes);

  const AllocateMemory allocate_;
  const bool has_several_devices_;
  Metrics& metrics_;
  mutable Mutex mutex_;
  std::vector<Device> devices_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<const std::byte*, Tensor> tensors_ ABSL_GUARDED_BY(mutex_);  // by their homes
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_STORE_REPLICAS_H_
