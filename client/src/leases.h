// Leases of resident tensors. They are renewed in the background while a handle exists in this process.
#ifndef WARPLINE_CLIENT_SRC_LEASES_H_
#define WARPLINE_CLIENT_SRC_LEASES_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/condition_variable.h"
#include "client/src/lease_schedule.h"
#include "client/src/message_writer.h"
#include "client/src/raw_channel.h"
#include "warpline/tensor.h"

namespace warpline::client {

// The leases of one client. Renewals, and drops of released tensors, are sent in batches. One thread starts
// the calls, from the first handle until Close. The responses arrive on the channel's thread. Handles share
// the Leases, so handles may outlive the client. Thread-safe.
class Leases {
 public:
  // The channel must live until Close has returned.
  explicit Leases(RawChannel& channel);
  ~Leases() { Close(); }
  Leases(const Leases&) = delete;
  Leases& operator=(const Leases&) = delete;

  // Renews the lease of the tensor until LetGo is called with the returned key.
  std::uint64_t Keep(const TensorInfo& tensor, bool owned);
  // Ends the renewals. If `drop` is set and the tensor is owned, also drops it in the background.
  void LetGo(std::uint64_t key, bool drop);
  // Lets go of tensors that a request has freed.
  void Freed(std::span<const std::string> ids);
  // Announces that a call to Renew will give the lease the length `ttl`. A shorter length applies to the
  // renewals at once, because the response of that call may be lost. A longer one is ignored until Restarted.
  void WillRestart(std::string_view id, absl::Duration ttl);
  // The lease has been restarted, with this length.
  void Restarted(std::string_view id, absl::Duration ttl);
  // Drops the owned tensors and ends the thread. This takes at most five seconds, or as long as a response
  // that was requested before. A tensor that is not dropped by then ends with its lease. All keys become
  // invalid.
  void Close();

 private:
  using Clock = std::chrono::steady_clock;
  using Response = absl::StatusOr<grpc::ByteBuffer>;
  using Keys = std::vector<std::pair<std::uint64_t, std::string>>;  // with ids

  void Run();
  // Starts as many calls as allowed. Takes the lock, and releases it temporarily.
  void StartCalls(std::unique_lock<std::mutex>& lock);
  // Each of these starts one call if there is one to start now, and returns whether it did.
  bool StartDrop(std::unique_lock<std::mutex>& lock);
  bool StartRenewal(std::unique_lock<std::mutex>& lock);
  void OnRenewed(const Keys& renewed, const Response& response);
  void OnDropped(const std::vector<std::string>& ids, const absl::Status& status);
  // `ended` is called with the mutex locked.
  void Call(std::unique_lock<std::mutex>& lock, const std::string& method, OutgoingMessage message,
            std::function<void(const Response&)> ended);
  // Notes that the server refused a request for `count` ids. Returns true if requests for single ids may
  // succeed.
  bool LearnFrom(const absl::Status& status, std::size_t count);
  void QueueDrop(HeldTensor tensor);
  // When the next drop may be sent; nothing if no drop is waiting.
  std::optional<Clock::time_point> DropTime() const;

  RawChannel& channel_;
  std::mutex mutex_;
  ConditionVariable changed_;
  LeaseSchedule schedule_;
  std::size_t ids_per_call_;
  std::deque<std::string> dropping_;  // ids
  std::size_t dropping_bytes_ = 0;
  Clock::time_point first_drop_{};     // when the first of them was queued
  Clock::time_point refused_until_{};  // the server was too busy for a drop
  std::size_t in_flight_ = 0;
  std::uint64_t last_key_ = 0;
  bool closed_ = false;
  Clock::time_point latest_drop_{};  // set when closed
  std::thread thread_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_LEASES_H_
