// An open region: its memory, who uses which part of it, and what its connection says.
#ifndef WARPLINE_CLIENT_SRC_SHARED_REGION_H_
#define WARPLINE_CLIENT_SRC_SHARED_REGION_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/region_allocator.h"
#include "client/src/region_memory.h"
#include "client/src/region_socket.h"
#include "client/src/region_table.h"
#include "client/src/region_watcher.h"

namespace warpline::client {

// How long a server may take to confirm that a call has ended. It is much longer than a job may run by
// default, and shorter than anybody would wait for a server that has stopped without closing its sockets.
inline constexpr absl::Duration kWithdrawalTimeout = absl::Minutes(1);

// Handles, arrays, and calls in flight share it; it closes when the last of them has gone. It is open until
// its connection ends, from either side, and then lost for good: everything but memory fails with the status
// that says why. Thread-safe.
class SharedRegion : public Watched, public std::enable_shared_from_this<SharedRegion> {
 public:
  // Makes the object for a region that the server has taken over as `id`. From now on the region is in the
  // table, and is watched.
  static absl::StatusOr<std::shared_ptr<SharedRegion>> Start(
      std::unique_ptr<RegionMemory> memory, RegionSocket socket, std::string id,
      std::shared_ptr<RegionTable> table, std::shared_ptr<RegionWatcher> watcher,
      absl::Duration withdrawal_timeout = kWithdrawalTimeout);
  ~SharedRegion() override;

  const std::string& id() const { return id_; }
  std::byte* data() const { return memory_->data(); }
  std::size_t bytes() const { return memory_->bytes(); }
  std::size_t free_bytes() const;
  // See RegionAllocator. Nothing if the region is lost.
  std::optional<std::size_t> SmallestGap(std::size_t bytes) const;
  // True if the region belongs to the client whose table this is.
  bool IsIn(const RegionTable& table) const { return table_.get() == &table; }
  // Unavailable, with the reason, once it is lost.
  absl::Status status() const;

  // Memory that its owner keeps, and with it the region. ResourceExhausted if there is no room.
  absl::StatusOr<std::shared_ptr<void>> Allocate(std::size_t bytes);

  // Keeps the block in which this memory lies from being used again. Returns what Unpin takes; nothing if the
  // memory lies in no block. The memory must lie within the region. Errors as status().
  absl::StatusOr<std::optional<std::size_t>> Pin(const void* data, std::size_t bytes);
  void Unpin(std::size_t block);

  // Asks the server for the end of a call. `ended` runs when it has confirmed that, or the region is lost: on
  // the watcher's thread, or at once on the caller's.
  void Withdraw(std::int64_t call, std::function<void()> ended);

  // The region is lost from now on, and the connection ends.
  void Lose(const absl::Status& why);

  absl::Duration OnEvent() override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Withdrawal {
    Clock::time_point latest;
    std::function<void()> ended;
  };

  SharedRegion(std::unique_ptr<RegionMemory> memory, RegionSocket socket, std::string id,
               std::shared_ptr<RegionTable> table, std::shared_ptr<RegionWatcher> watcher,
               absl::Duration withdrawal_timeout);
  // Sends the withdrawals that were not sent yet, as far as possible without waiting. Called with mutex_
  // held.
  absl::Status SendWithdrawals();
  // Receives all packets that are here.
  absl::Status Receive();
  void Ended(std::int64_t call);
  // Returns the time until the first withdrawal, if there is one, is too late. It is too late if the time is
  // not above zero.
  absl::Duration TimeLeft() const;

  const pid_t process_;
  const std::unique_ptr<RegionMemory> memory_;
  const std::string id_;
  const std::shared_ptr<RegionTable> table_;
  const std::shared_ptr<RegionWatcher> watcher_;
  const absl::Duration withdrawal_timeout_;
  std::uint64_t watch_key_ = 0;

  mutable std::mutex mutex_;
  RegionSocket socket_;  // sends hold the mutex; only the watcher's thread reads
  absl::Status status_;
  RegionAllocator allocator_;
  std::map<std::int64_t, Withdrawal> withdrawals_;  // by call
  std::deque<std::int64_t> unsent_;                 // of these
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_SHARED_REGION_H_
