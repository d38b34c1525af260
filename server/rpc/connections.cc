#include "server/rpc/connections.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/clock.h"
#include "server/rpc/gentle_close.h"

namespace warpline {
namespace {

// How long names are asked for after the last reset beyond a budget.
constexpr absl::Duration kLearning = absl::Seconds(1);

// How many connections that reset calls are remembered at most. Each takes some 200 bytes.
constexpr std::size_t kMaxResetters = 4096;

std::string NameV4(const in_addr& address, in_port_t port) {
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address, text, sizeof(text));
  return absl::StrCat("ipv4:", text, ":", ntohs(port));
}

}  // namespace

std::string PeerName(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof(v4));
    return NameV4(v4.sin_addr, v4.sin_port);
  }
  if (address.ss_family != AF_INET6) return "";
  sockaddr_in6 v6;
  std::memcpy(&v6, &address, sizeof(v6));
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    in_addr v4;
    std::memcpy(&v4, &v6.sin6_addr.s6_addr[12], sizeof(v4));
    return NameV4(v4, v6.sin6_port);
  }
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  const std::string scope = v6.sin6_scope_id != 0 ? absl::StrCat("%25", v6.sin6_scope_id) : "";
  return absl::StrCat("ipv6:%5B", text, scope, "%5D:", ntohs(v6.sin6_port));
}

int Connections::Add(int fd, const sockaddr_storage& peer) {
  MutexLock lock(&mutex_);
  if (static_cast<int>(connections_.size()) >= options_.max_connections) {
    errno = EUSERS;
    return -1;
  }
  UniqueFd duplicate(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!duplicate.ok()) return -1;
  const int number = duplicate.get();
  Connection connection{.duplicate = std::move(duplicate), .peer = PeerName(peer)};
  if (!connection.peer.empty()) duplicates_[connection.peer] = number;
  connections_.emplace(number, std::move(connection));
  return number;
}

void Connections::Remove(int duplicate) {
  MutexLock lock(&mutex_);
  const auto found = connections_.find(duplicate);
  if (found == connections_.end()) return;
  // A new connection may already have the same name.
  const auto named = duplicates_.find(found->second.peer);
  if (named != duplicates_.end() && named->second == duplicate) duplicates_.erase(named);
  connections_.erase(found);
}

bool Connections::AwaitNone(absl::Duration longest, absl::Duration longest_unsent) const {
  const MonotonicTime deadline = After(longest);
  const MonotonicTime deadline_unsent = After(longest_unsent);
  while (size() > 0) {
    const MonotonicTime now = MonotonicClock::now();
    if (now >= deadline && (now >= deadline_unsent || !HasUnsent())) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

bool Connections::HasUnsent() const {
  MutexLock lock(&mutex_);
  return std::any_of(connections_.begin(), connections_.end(), [](const auto& connection) {
    int bytes = 0;
    return ioctl(connection.first, SIOCOUTQ, &bytes) == 0 && bytes > 0;
  });
}

void Connections::CutHalfClosed(absl::Duration longest) {
  const MonotonicTime now = MonotonicClock::now();
  MutexLock lock(&mutex_);
  for (auto& [number, connection] : connections_) {
    tcp_info info{};
    socklen_t size = sizeof(info);
    const bool half_closed =
        getsockopt(number, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == TCP_FIN_WAIT2;
    if (!half_closed) continue;
    if (connection.half_closed_since == kNever) connection.half_closed_since = now;
    if (now - connection.half_closed_since >= absl::ToChronoNanoseconds(longest)) CutConnection(number);
  }
}

void Connections::EndAll(absl::Duration longest) {
  std::vector<pollfd> open;
  {
    MutexLock lock(&mutex_);
    for (const auto& [number, connection] : connections_) {
      shutdown(number, SHUT_WR);
      open.push_back({.fd = number, .events = POLLRDHUP, .revents = 0});
    }
  }
  const MonotonicTime deadline = After(longest);
  while (!open.empty()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - MonotonicClock::now());
    if (left.count() <= 0 || poll(open.data(), open.size(), static_cast<int>(left.count())) < 0) return;
    std::erase_if(open, [](const pollfd& connection) { return connection.revents != 0; });
  }
}

int Connections::size() const {
  MutexLock lock(&mutex_);
  return static_cast<int>(connections_.size());
}

void Connections::CountAnswered(const void* identity, int calls) {
  MutexLock lock(&mutex_);
  const auto found = resetters_.find(identity);
  if (found != resetters_.end()) found->second.budget.CountAnswered(calls);
}

void Connections::CountReset(const void* identity) {
  const absl::Time now = absl::Now();
  MutexLock lock(&mutex_);
  // Nothing tells which of these connections are gone, so when there are too many all of them are forgotten.
  if (resetters_.size() >= kMaxResetters) resetters_.clear();
  const Resetter fresh{.budget = ResetBudget(options_.resets, now)};
  Resetter& resetter = resetters_.try_emplace(identity, fresh).first->second;
  if (resetter.budget.CountReset(now)) return;
  resetter.spent = true;
  wants_peers_until_ = now + kLearning;
  wants_peers_.store(true, std::memory_order_relaxed);
}

void Connections::LearnPeer(const void* identity, const std::string& peer) {
  MutexLock lock(&mutex_);
  if (absl::Now() >= wants_peers_until_) wants_peers_.store(false, std::memory_order_relaxed);
  const auto found = resetters_.find(identity);
  if (found == resetters_.end() || !found->second.spent) return;
  // The next connection may get the same identity.
  resetters_.erase(found);
  const auto named = duplicates_.find(peer);
  if (named == duplicates_.end()) return;
  log_.Write("warning", "connection cut: it resets its calls", {{"peer", peer}});
  CutConnection(connections_.at(named->second).duplicate.get());
}

}  // namespace warpline
