#include "client/src/shared_region.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

// How soon to retry if the connection accepts no more packets. The server reads continuously, so this hardly
// ever happens.
constexpr absl::Duration kSendPeriod = absl::Milliseconds(10);

}  // namespace

absl::StatusOr<std::shared_ptr<SharedRegion>> SharedRegion::Start(std::unique_ptr<RegionMemory> memory,
                                                                  RegionSocket socket, std::string id,
                                                                  std::shared_ptr<RegionTable> table,
                                                                  std::shared_ptr<RegionWatcher> watcher,
                                                                  absl::Duration withdrawal_timeout) {
  std::shared_ptr<SharedRegion> region(new SharedRegion(std::move(memory), std::move(socket), std::move(id),
                                                        std::move(table), std::move(watcher),
                                                        withdrawal_timeout));
  region->table_->Add(region->data(), region->bytes(), region);
  ASSIGN_OR_RETURN(const std::uint64_t key, region->watcher_->Add(region->socket_.fd(), region));
  bool lost = false;
  {
    const std::lock_guard lock(region->mutex_);
    region->watch_key_ = key;
    lost = !region->status_.ok();
  }
  // The region may have been lost before its watcher key was known.
  if (lost) region->watcher_->Remove(key);
  return region;
}

SharedRegion::SharedRegion(std::unique_ptr<RegionMemory> memory, RegionSocket socket, std::string id,
                           std::shared_ptr<RegionTable> table, std::shared_ptr<RegionWatcher> watcher,
                           absl::Duration withdrawal_timeout)
    : process_(::getpid()),
      memory_(std::move(memory)),
      id_(std::move(id)),
      table_(std::move(table)),
      watcher_(std::move(watcher)),
      withdrawal_timeout_(withdrawal_timeout),
      socket_(std::move(socket)),
      allocator_(memory_->bytes()) {}

SharedRegion::~SharedRegion() {
  // A forked child has copies of all members, but shares the watcher's descriptors with its parent.
  if (::getpid() != process_) return;
  table_->Remove(data());
  watcher_->Remove(watch_key_);
}

std::size_t SharedRegion::free_bytes() const {
  const std::lock_guard lock(mutex_);
  return allocator_.free_bytes();
}

std::optional<std::size_t> SharedRegion::SmallestGap(std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  if (!status_.ok()) return std::nullopt;
  return allocator_.SmallestGap(bytes);
}

absl::Status SharedRegion::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

absl::StatusOr<std::shared_ptr<void>> SharedRegion::Allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(status_);
  ASSIGN_OR_RETURN(const std::size_t offset, allocator_.Allocate(bytes));
  return std::shared_ptr<void>(data() + offset, [self = shared_from_this(), offset](void*) {
    const std::lock_guard freeing(self->mutex_);
    self->allocator_.Free(offset);
  });
}

absl::StatusOr<std::optional<std::size_t>> SharedRegion::Pin(const void* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(status_);
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(memory) - data());
  return allocator_.Pin(offset, bytes);
}

void SharedRegion::Unpin(std::size_t block) {
  const std::lock_guard lock(mutex_);
  allocator_.Unpin(block);
}

void SharedRegion::Withdraw(std::int64_t call, std::function<void()> ended) {
  absl::Status sent;
  {
    std::unique_lock lock(mutex_);
    if (!status_.ok()) {
      lock.unlock();
      return ended();
    }
    const auto latest = Clock::now() + absl::ToChronoNanoseconds(withdrawal_timeout_);
    withdrawals_.emplace(call, Withdrawal{latest, std::move(ended)});
    unsent_.push_back(call);
    sent = SendWithdrawals();
  }
  if (!sent.ok()) return Lose(sent);
  watcher_->Wake();  // there is a new deadline to wait for
}

absl::Status SharedRegion::SendWithdrawals() {
  while (!unsent_.empty()) {
    ASSIGN_OR_RETURN(const bool sent, socket_.SendWithdrawal(unsent_.front()));
    if (!sent) return absl::OkStatus();
    unsent_.pop_front();
  }
  return absl::OkStatus();
}

absl::Duration SharedRegion::OnEvent() {
  absl::Status status = Receive();
  absl::Duration next = TimeLeft();
  if (status.ok() && next <= absl::ZeroDuration()) {
    status = absl::UnavailableError(absl::StrCat("the server has not confirmed the end of a call for ",
                                                 absl::FormatDuration(withdrawal_timeout_)));
  }
  if (status.ok()) {
    const std::lock_guard lock(mutex_);
    status = SendWithdrawals();
    if (!unsent_.empty()) next = std::min(next, kSendPeriod);
  }
  if (status.ok()) return next;
  Lose(status);
  return absl::InfiniteDuration();
}

absl::Status SharedRegion::Receive() {
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<v1::RegionReply> reply, socket_.Receive());
    if (!reply) return absl::OkStatus();
    if (reply->has_ended()) Ended(reply->ended().call());
    if (reply->has_error()) {
      return absl::UnavailableError(absl::StrCat("the server gave it up: ", reply->error().message()));
    }
    // Other messages of a newer server are ignored.
  }
}

void SharedRegion::Ended(std::int64_t call) {
  std::function<void()> ended;
  {
    const std::lock_guard lock(mutex_);
    const auto withdrawal = withdrawals_.find(call);
    if (withdrawal == withdrawals_.end()) return;
    ended = std::move(withdrawal->second.ended);
    withdrawals_.erase(withdrawal);
  }
  ended();
}

absl::Duration SharedRegion::TimeLeft() const {
  const std::lock_guard lock(mutex_);
  Clock::time_point first = Clock::time_point::max();
  for (const auto& [call, withdrawal] : withdrawals_) first = std::min(first, withdrawal.latest);
  if (withdrawals_.empty()) return absl::InfiniteDuration();
  return absl::FromChrono(first - Clock::now());
}

void SharedRegion::Lose(const absl::Status& why) {
  std::map<std::int64_t, Withdrawal> withdrawals;
  std::uint64_t key = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!status_.ok()) return;
    status_ = absl::UnavailableError(absl::StrCat(
        "a region of ", bytes(), " bytes is lost, and another is to be opened: ", why.message()));
    withdrawals.swap(withdrawals_);
    unsent_.clear();
    key = watch_key_;
    socket_.Shutdown();
  }
  watcher_->Remove(key);
  for (auto& [call, withdrawal] : withdrawals) withdrawal.ended();
}

}  // namespace warpline::client
