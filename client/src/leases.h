// Leases of resident tensors, renewed in the background for as long as somebody has a handle here.
#ifndef WARPLINE_CLIENT_SRC_LEASES_H_
#define WARPLINE_CLIENT_SRC_LEASES_H_

#include <chrono>
#include <condition_variable>
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
#include "client/src/lease_schedule.h"
#include "client/src/message_writer.h"
#include "client/src/raw_channel.h"
#include "warpline/tensor.h"

namespace warpline::client {

// The leases of one client. They are renewed, and the tensors that are let go are dropped, many at a time.
// One thread starts the calls, from the first handle on until Close. The answers arrive on the channel's
// thread. Handles share the Leases, so that they may outlive the client. Thread-safe.
class Leases {
 public:
  // The channel must stay until Close has returned.
  explicit Leases(RawChannel& channel);
  ~Leases() { Close(); }
  Leases(const Leases&) = delete;
  Leases& operator=(const Leases&) = delete;

  // Renews the lease of the tensor until the key that is returned is let go.
  std::uint64_t Keep(const TensorInfo& tensor, bool owned);
  // Ends that, and if `drop` is set, drops the tensor in the background if it is owned.
  void LetGo(std::uint64_t key, bool drop);
  // Lets go of tensors that a request has dropped.
  void Freed(std::span<const std::string> ids);
  // The lease is about to get another length: it is renewed as the shorter one needs it, since nobody knows
  // when it begins.
  void WillRestart(std::string_view id, absl::Duration ttl);
  // The lease has begun anew, with this length.
  void Restarted(std::string_view id, absl::Duration ttl);
  // Drops what is owned and ends the thread, which takes five seconds at the most, or as long as an answer
  // that was asked for before. What is not dropped by then ends with its lease. Keys have no meaning any
  // more.
  void Close();

 private:
  using Clock = std::chrono::steady_clock;
  using Response = absl::StatusOr<grpc::ByteBuffer>;
  using Keys = std::vector<std::pair<std::uint64_t, std::string>>;  // with ids

  void Run();
  // Starts as many calls as may be, and is given the lock, which it gives up in between.
  void StartCalls(std::unique_lock<std::mutex>& lock);
  // These start one call if there is one to start now. They return whether there was.
  bool StartDrop(std::unique_lock<std::mutex>& lock);
  bool StartRenewal(std::unique_lock<std::mutex>& lock);
  void OnRenewed(const Keys& renewed, const Response& response);
  void OnDropped(const std::vector<std::string>& ids, const absl::Status& status);
  // `ended` is called with the mutex locked.
  void Call(std::unique_lock<std::mutex>& lock, const std::string& method, OutgoingMessage message,
            std::function<void(const Response&)> ended);
  // Notes the server's refusal of a request for this many ids. True if requests for one id may do better.
  bool LearnFrom(const absl::Status& status, std::size_t count);
  void QueueDrop(HeldTensor tensor);
  // When the next drop may be sent; nothing if there is none to send.
  std::optional<Clock::time_point> DropTime() const;

  RawChannel& channel_;
  std::mutex mutex_;
  std::condition_variable changed_;
  LeaseSchedule schedule_;
  std::size_t ids_per_call_;
  std::deque<std::string> dropping_;  // ids
  std::size_t dropping_bytes_ = 0;
  Clock::time_point first_drop_{};     // when the first of them came
  Clock::time_point refused_until_{};  // the server was too busy for a drop
  std::size_t in_flight_ = 0;
  std::uint64_t last_key_ = 0;
  bool closed_ = false;
  Clock::time_point latest_drop_{};  // once it is closed
  std::thread thread_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_LEASES_H_
