#include "client/src/leases.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "client/src/methods.h"
#include "client/src/tensor_codec.h"

namespace warpline::client {
namespace {

// The timeouts of one call to the server, and of all such calls together once the client closes.
constexpr absl::Duration kCallTimeout = absl::Seconds(5);
constexpr std::chrono::seconds kCloseTimeout(5);
// More calls would slow down the caller's own calls on the connection.
constexpr std::size_t kMaxInFlight = 16;
// The API's limit of ids in one request.
constexpr std::size_t kMaxIds = 1000;
// Programs free tensors one after the other. A drop waits for kDropDelay, so that one call drops several
// tensors. It is sent earlier once kMaxDroppingBytes are waiting, or as many tensors as fit one call.
constexpr std::chrono::milliseconds kDropDelay(10);
constexpr std::chrono::milliseconds kRefusedDelay(100);
constexpr std::size_t kMaxDroppingBytes = std::size_t{16} << 20;

}  // namespace

Leases::Leases(RawChannel& channel) : channel_(channel), ids_per_call_(kMaxIds) {}

std::uint64_t Leases::Keep(const TensorInfo& tensor, bool owned) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t key = ++last_key_;
  if (closed_) return key;
  const std::optional<Clock::time_point> next = schedule_.Next();
  schedule_.Add(key, {.id = tensor.id, .ttl = tensor.ttl, .owned = owned, .bytes = tensor.bytes},
                Clock::now());
  if (!thread_.joinable()) thread_ = std::thread(&Leases::Run, this);
  if (schedule_.Next() != next) changed_.notify_all();
  return key;
}

void Leases::LetGo(std::uint64_t key, bool drop) {
  const std::lock_guard lock(mutex_);
  std::optional<HeldTensor> tensor = schedule_.Remove(key);
  if (!drop || !tensor || !tensor->owned) return;
  QueueDrop(*std::move(tensor));
}

void Leases::Freed(std::span<const std::string> ids) {
  const std::lock_guard lock(mutex_);
  for (const std::string& id : ids) schedule_.Forget(id);
}

void Leases::WillRestart(std::string_view id, absl::Duration ttl) {
  const std::lock_guard lock(mutex_);
  const std::optional<absl::Duration> length = schedule_.LengthOf(id);
  if (!length || ttl >= *length) return;
  schedule_.Restart(id, ttl, Clock::now());
  changed_.notify_all();
}

void Leases::Restarted(std::string_view id, absl::Duration ttl) {
  const std::lock_guard lock(mutex_);
  schedule_.Restart(id, ttl, Clock::now());
  changed_.notify_all();
}

void Leases::Close() {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
    latest_drop_ = Clock::now() + kCloseTimeout;
    for (HeldTensor& tensor : schedule_.End()) QueueDrop(std::move(tensor));
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Leases::QueueDrop(HeldTensor tensor) {
  if (dropping_.empty()) first_drop_ = Clock::now();
  const std::optional<Clock::time_point> time = DropTime();
  dropping_bytes_ += tensor.bytes;
  dropping_.push_back(std::move(tensor.id));
  if (DropTime() != time) changed_.notify_all();
}

std::optional<Leases::Clock::time_point> Leases::DropTime() const {
  if (dropping_.empty()) return std::nullopt;
  const bool is_full = dropping_bytes_ >= kMaxDroppingBytes || dropping_.size() >= ids_per_call_;
  const Clock::time_point time = is_full || closed_ ? Clock::time_point() : first_drop_ + kDropDelay;
  return std::max(time, refused_until_);
}

void Leases::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    StartCalls(lock);
    if (closed_ && in_flight_ == 0 && dropping_.empty()) return;
    std::optional<Clock::time_point> until;
    if (in_flight_ < kMaxInFlight) {
      until = schedule_.Next();
      const std::optional<Clock::time_point> drop = DropTime();
      if (drop && (!until || *drop < *until)) until = drop;
    }
    if (until) {
      changed_.wait_until(lock, *until);
    } else {
      changed_.wait(lock);
    }
  }
}

void Leases::StartCalls(std::unique_lock<std::mutex>& lock) {
  while (in_flight_ < kMaxInFlight) {
    if (closed_ && std::max(Clock::now(), refused_until_) >= latest_drop_) dropping_.clear();
    if (!StartDrop(lock) && !StartRenewal(lock)) return;
  }
}

void Leases::Call(std::unique_lock<std::mutex>& lock, const std::string& method, OutgoingMessage message,
                  std::function<void(const Response&)> ended) {
  ++in_flight_;
  const absl::Duration timeout = closed_ ? absl::FromChrono(latest_drop_ - Clock::now()) : kCallTimeout;
  lock.unlock();
  channel_.CallAsync(method, std::move(message), absl::Now() + timeout, "",
                     [this, ended = std::move(ended)](const Response& response) {
                       const std::lock_guard answered(mutex_);
                       --in_flight_;
                       ended(response);
                       changed_.notify_all();
                     });
  lock.lock();
}

bool Leases::LearnFrom(const absl::Status& status, std::size_t count) {
  // Servers older than 2026-11-27 do not support requests for several ids.
  if (!absl::IsInvalidArgument(status) || count == 1) return false;
  ids_per_call_ = 1;
  return true;
}

bool Leases::StartDrop(std::unique_lock<std::mutex>& lock) {
  const std::optional<Clock::time_point> time = DropTime();
  if (!time || *time > Clock::now()) return false;
  const auto count = static_cast<std::ptrdiff_t>(std::min(dropping_.size(), ids_per_call_));
  std::vector<std::string> ids(dropping_.begin(), dropping_.begin() + count);
  dropping_.erase(dropping_.begin(), dropping_.begin() + count);
  if (dropping_.empty()) dropping_bytes_ = 0;  // otherwise the rest is sent at once
  OutgoingMessage message = ids.size() == 1 ? EncodeDrop(ids[0]) : EncodeDropEach(ids);
  Call(lock, DropMethod(), std::move(message),
       [this, ids = std::move(ids)](const Response& response) { OnDropped(ids, response.status()); });
  return true;
}

void Leases::OnDropped(const std::vector<std::string>& ids, const absl::Status& status) {
  const bool is_refused = absl::IsResourceExhausted(status);
  if (is_refused) refused_until_ = Clock::now() + kRefusedDelay;
  // Otherwise the drop is not repeated: the leases of these tensors end.
  if (is_refused || LearnFrom(status, ids.size())) dropping_.insert(dropping_.end(), ids.begin(), ids.end());
}

bool Leases::StartRenewal(std::unique_lock<std::mutex>& lock) {
  Keys due = schedule_.TakeDue(Clock::now(), ids_per_call_);
  if (due.empty()) return false;
  std::vector<std::string> ids;
  for (const auto& [key, id] : due) ids.push_back(id);
  OutgoingMessage message = ids.size() == 1 ? EncodeRenew(ids[0], {}) : EncodeRenewEach(ids);
  Call(lock, RenewMethod(), std::move(message),
       [this, due = std::move(due)](const Response& response) { OnRenewed(due, response); });
  return true;
}

void Leases::OnRenewed(const Keys& renewed, const Response& response) {
  const absl::StatusOr<std::vector<absl::Duration>> lengths =
      response.ok() ? DecodeRenewedLengths(*response, renewed.size()) : response.status();
  const Clock::time_point now = Clock::now();
  const bool again = LearnFrom(lengths.status(), renewed.size());
  for (std::size_t i = 0; i < renewed.size(); ++i) {
    const std::uint64_t key = renewed[i].first;
    if (!lengths.ok()) {
      schedule_.Failed(key, again ? absl::StatusCode::kUnavailable : lengths.status().code(), now);
    } else if ((*lengths)[i] > absl::ZeroDuration()) {
      schedule_.Renewed(key, (*lengths)[i], now);
    } else {
      schedule_.Failed(key, absl::StatusCode::kNotFound, now);
    }
  }
}

}  // namespace warpline::client
