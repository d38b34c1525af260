#include "client/src/leases.h"

#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "client/src/methods.h"
#include "client/src/tensor_codec.h"

namespace warpline::client {
namespace {

// The timeouts of one call to the server, and of all such calls together once the client closes.
constexpr absl::Duration kCallTimeout = absl::Seconds(5);
constexpr std::chrono::seconds kCloseTimeout(5);
// More would crowd out the caller's own calls on the connection.
constexpr std::size_t kMaxInFlight = 64;

}  // namespace

std::uint64_t Leases::Keep(const std::string& id, absl::Duration ttl, bool owned) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t key = ++last_key_;
  if (closed_) return key;
  schedule_.Add(key, id, ttl, owned, Clock::now());
  if (!thread_.joinable()) thread_ = std::thread(&Leases::Run, this);
  changed_.notify_all();
  return key;
}

void Leases::LetGo(std::uint64_t key, bool drop) {
  const std::lock_guard lock(mutex_);
  std::optional<std::string> id = schedule_.Remove(key);
  if (!drop || !id) return;
  dropping_.push_back(*std::move(id));
  changed_.notify_all();
}

void Leases::Close() {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
    latest_drop_ = Clock::now() + kCloseTimeout;
    for (std::string& id : schedule_.End()) dropping_.push_back(std::move(id));
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Leases::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    StartCalls(lock);
    if (closed_ && in_flight_ == 0 && dropping_.empty()) return;
    std::optional<Clock::time_point> until;
    if (in_flight_ < kMaxInFlight) until = schedule_.Next();
    if (until) {
      changed_.wait_until(lock, *until);
    } else {
      changed_.wait(lock);
    }
  }
}

void Leases::StartCalls(std::unique_lock<std::mutex>& lock) {
  while (in_flight_ < kMaxInFlight) {
    if (closed_ && Clock::now() >= latest_drop_) dropping_.clear();
    absl::Duration timeout = kCallTimeout;
    if (!dropping_.empty()) {
      const std::string id = std::move(dropping_.front());
      dropping_.pop_front();
      if (closed_) timeout = absl::FromChrono(latest_drop_ - Clock::now());
      ++in_flight_;
      lock.unlock();
      channel_.CallAsync(DropMethod(), EncodeDrop(id), absl::Now() + timeout, "",
                         [this](const absl::StatusOr<grpc::ByteBuffer>&) {
                           const std::lock_guard ended(mutex_);
                           --in_flight_;
                           changed_.notify_all();
                         });
      lock.lock();
      continue;
    }
    const auto due = schedule_.TakeDue(Clock::now());
    if (!due) return;
    ++in_flight_;
    lock.unlock();
    channel_.CallAsync(RenewMethod(), EncodeRenew(due->second, {}), absl::Now() + timeout, "",
                       [this, key = due->first](const absl::StatusOr<grpc::ByteBuffer>& response) {
                         OnRenewed(key, response);
                       });
    lock.lock();
  }
}

void Leases::OnRenewed(std::uint64_t key, const absl::StatusOr<grpc::ByteBuffer>& response) {
  const absl::StatusOr<TensorInfo> info = response.ok() ? DecodeTensor(*response) : response.status();
  const std::lock_guard lock(mutex_);
  --in_flight_;
  if (info.ok()) {
    schedule_.Renewed(key, info->ttl, Clock::now());
  } else {
    schedule_.Failed(key, info.status().code(), Clock::now());
  }
  changed_.notify_all();
}

}  // namespace warpline::client
