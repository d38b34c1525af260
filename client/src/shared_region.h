// An open region: its memory, the users of each part, and the state of its connection.
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
// default. It is also short enough to detect a server that hangs without closing its sockets.
inline constexpr absl::Duration kWithdrawalTimeout = absl::Minutes(1);

// Handles, arrays, and calls in flight share the region. It closes when the last of them is gone. If its
// connection ends, from either side, the region is lost for good: then everything except memory access fails
// with the status that gives the reason. Thread-safe.
class SharedRegion : public Watched, public std::enable_shared_from_this<SharedRegion> {
 public:
  // Makes the object for a region that the server has accepted as `id`. From then on the region is in the
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
  // Unavailable, with the reason, once the region is lost.
  absl::Status status() const;

  // Allocates memory whose owner also keeps the region alive. ResourceExhausted if there is no room.
  absl::StatusOr<std::shared_ptr<void>> Allocate(std::size_t bytes);

  // Prevents reuse of the block that contains this memory. Returns the argument for Unpin; nothing if no
  // block contains the memory. The memory must lie within the region. Errors as for status().
  absl::StatusOr<std::optional<std::size_t>> Pin(const void* data, std::size_t bytes);
  void Unpin(std::size_t block);

  // Asks the server to end a call. `ended` runs when the server has confirmed that, or when the region is
  // lost. It runs on the watcher's thread, or at once on the caller's thread.
  void Withdraw(std::int64_t call, std::function<void()> ended);

  // Marks the region as lost, and ends the connection.
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
  // Sends the pending withdrawals, as far as possible without waiting. Called with mutex_ held.
  absl::Status SendWithdrawals();
  // Receives all available packets.
  absl::Status Receive();
  void Ended(std::int64_t call);
  // Returns the time until the oldest withdrawal is overdue. It is overdue if the time is not above zero.
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
  std::map<std::int64_t, Withdrawal> withdrawals_;  // by call number
  std::deque<std::int64_t> unsent_;                 // calls in withdrawals_ that are not sent yet
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_SHARED_REGION_H_
