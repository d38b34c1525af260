// Leases of resident tensors, renewed in the background for as long as somebody has a handle here.
#ifndef WARPLINE_CLIENT_SRC_LEASES_H_
#define WARPLINE_CLIENT_SRC_LEASES_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/lease_schedule.h"
#include "client/src/raw_channel.h"

namespace warpline::client {

// The leases of one client. One thread starts the calls, from the first handle on until Close. The answers
// arrive on the channel's thread. Handles share the Leases, so that they may outlive the client. Thread-safe.
class Leases {
 public:
  // The channel must stay until Close has returned.
  explicit Leases(RawChannel& channel) : channel_(channel) {}
  ~Leases() { Close(); }
  Leases(const Leases&) = delete;
  Leases& operator=(const Leases&) = delete;

  // Renews the lease, of this length, until the key that is returned is let go.
  std::uint64_t Keep(const std::string& id, absl::Duration ttl, bool owned);
  // Ends that, and if `drop` is set, drops the tensor in the background if it is owned.
  void LetGo(std::uint64_t key, bool drop);
  // Drops what is owned and ends the thread, which takes five seconds at the most, or as long as an answer
  // that was asked for before. What is not dropped by then ends with its lease. Keys have no meaning any
  // more.
  void Close();

 private:
  using Clock = std::chrono::steady_clock;

  void Run();
  // Starts as many calls as may be, and is given the lock, which it gives up in between.
  void StartCalls(std::unique_lock<std::mutex>& lock);
  void OnRenewed(std::uint64_t key, const absl::StatusOr<grpc::ByteBuffer>& response);

  RawChannel& channel_;
  std::mutex mutex_;
  std::condition_variable changed_;
  LeaseSchedule schedule_;
  std::deque<std::string> dropping_;  // ids
  std::size_t in_flight_ = 0;
  std::uint64_t last_key_ = 0;
  bool closed_ = false;
  Clock::time_point latest_drop_{};  // once it is closed
  std::thread thread_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_LEASES_H_
