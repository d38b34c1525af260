#include "client/src/region_watcher.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

constexpr std::uint64_t kWakeKey = 0;

absl::Status Failed(const char* what) {
  return absl::UnavailableError(
      absl::StrCat("regions cannot be watched: ", what, ": ", std::strerror(errno)));
}

absl::Status Watch(int epoll, int fd, std::uint64_t key) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) return Failed("epoll_ctl");
  return absl::OkStatus();
}

int Milliseconds(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return -1;
  // Round up, so that the thread does not spin just before the deadline.
  const absl::Duration bounded = std::clamp(duration, absl::ZeroDuration(), absl::Minutes(1));
  return static_cast<int>(absl::ToInt64Milliseconds(bounded)) + 1;
}

}  // namespace

RegionWatcher::~RegionWatcher() {
  Close();
  if (wake_ >= 0) ::close(wake_);
  if (epoll_ >= 0) ::close(epoll_);
}

absl::Status RegionWatcher::Start() {
  if (thread_.joinable()) return absl::OkStatus();
  if (epoll_ < 0) epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return Failed("epoll_create1");
  if (wake_ < 0) {
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_ < 0) return Failed("eventfd");
    RETURN_IF_ERROR(Watch(epoll_, wake_, kWakeKey));
  }
  try {
    thread_ = std::thread(&RegionWatcher::Run, this);
  } catch (const std::system_error& error) {
    return absl::UnavailableError(absl::StrCat("a thread for shared regions: ", error.what()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> RegionWatcher::Add(int socket, std::weak_ptr<Watched> watched) {
  const std::lock_guard lock(mutex_);
  if (closed_) return absl::UnavailableError("the client has gone");
  RETURN_IF_ERROR(Start());
  const std::uint64_t key = ++last_key_;
  RETURN_IF_ERROR(Watch(epoll_, socket, key));
  entries_.emplace(key, Entry{socket, std::move(watched)});
  return key;
}

void RegionWatcher::Remove(std::uint64_t key) {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return;
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, entry->second.socket, nullptr);
  entries_.erase(entry);
}

void RegionWatcher::Wake() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t one = 1;
  // The write fails only if the counter is full. Then the thread wakes anyway.
  if (wake_ >= 0 && ::write(wake_, &one, sizeof(one)) < 0) return;
}

void RegionWatcher::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  Wake();
  if (thread_.joinable()) thread_.join();
}

void RegionWatcher::Run() {
  absl::Time next = absl::InfiniteFuture();
  while (true) {
    std::array<epoll_event, 16> events{};
    const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()),
                                   Milliseconds(next - absl::Now()));
    bool all = absl::Now() >= next;
    for (int i = 0; i < count; ++i) {
      const std::uint64_t key = events[static_cast<std::size_t>(i)].data.u64;
      if (key == kWakeKey) {
        std::uint64_t wakes = 0;
        all = ::read(wake_, &wakes, sizeof(wakes)) > 0 || all;
      } else if (const std::shared_ptr<Watched> watched = Find(key)) {
        next = std::min(next, absl::Now() + watched->OnEvent());
      }
    }
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
    }
    if (all) next = absl::Now() + CallAll();
  }
}

std::shared_ptr<Watched> RegionWatcher::Find(std::uint64_t key) {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(key);
  return entry == entries_.end() ? nullptr : entry->second.watched.lock();
}

absl::Duration RegionWatcher::CallAll() {
  std::vector<std::shared_ptr<Watched>> all;  // released without the lock: may be the last owner
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, entry] : entries_) all.push_back(entry.watched.lock());
  }
  absl::Duration next = absl::InfiniteDuration();
  for (const std::shared_ptr<Watched>& watched : all) {
    if (watched != nullptr) next = std::min(next, watched->OnEvent());
  }
  return next;
}

}  // namespace warpline::client
