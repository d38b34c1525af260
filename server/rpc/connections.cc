#include "server/rpc/connections.h"

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
#include <optional>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/clock.h"
#include "server/rpc/gentle_close.h"
#include "server/rpc/peer_naming.h"

namespace warpline {
namespace {

// Maximum number of connections that are cut but not removed yet: each still uses its descriptors.
constexpr int kMaxCut = 64;

// A connection with an answered call is not cut for this few futile calls, because other connections of its
// peer may have caused the debt.
constexpr int kFutileCallsMin = 32;

// Maximum number of closed connections that are remembered because calls of them may still arrive. Each takes
// some 250 bytes.
constexpr std::size_t kMaxEnded = 8192;

// Returned for connections that are no longer remembered.
const std::shared_ptr<Connection>& Forgotten() {
  static const auto* const forgotten = [] {
    auto connection = std::make_shared<Connection>(0, -1, Peer(), "unknown");
    connection->SetEnded();
    return new std::shared_ptr<Connection>(std::move(connection));
  }();
  return *forgotten;
}

}  // namespace

absl::StatusOr<Connections::Added> Connections::Add(int fd, const Peer& peer, std::string name) {
  MutexLock lock(&mutex_);
  switch (budgets_.AddConnection(peer, MonotonicClock::now())) {
    case PeerBudgets::Verdict::kTaken:
      break;
    case PeerBudgets::Verdict::kTooManyConnections:
      return absl::ResourceExhaustedError(absl::StrCat(ToString(peer), " opens too many connections"));
    case PeerBudgets::Verdict::kInDebt:
      return absl::ResourceExhaustedError(absl::StrCat(ToString(peer), " cancelled too many calls"));
  }
  absl::Cleanup give_up = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { budgets_.RemoveConnection(peer); };
  if (!MakeRoom(peer)) {
    return absl::ResourceExhaustedError(absl::StrCat(ToString(peer), " has ", budgets_.connections(peer) - 1,
                                                     " connections, of ", entries_.size() - cut_,
                                                     " in all; none of those that could make room is idle"));
  }
  UniqueFd duplicate(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!duplicate.ok()) return absl::UnavailableError(std::strerror(errno));
  std::move(give_up).Cancel();
  const Added added{.duplicate = duplicate.get(), .number = ++last_number_};
  auto connection = std::make_shared<Connection>(added.number, fd, peer, std::move(name));
  by_number_[added.number] = {.connection = connection, .duplicate = added.duplicate};
  entries_[added.duplicate] = {
      .connection = std::move(connection), .duplicate = std::move(duplicate), .context = nullptr};
  return added;
}

bool Connections::MakeRoom(const Peer& peer) {
  const int open = static_cast<int>(entries_.size()) - cut_;
  const int own = budgets_.connections(peer) - 1;  // beside the new one
  const int left = options_.max_connections - (open - own);
  if (own > 0 && own >= left - left / 4) return cut_ < kMaxCut && CutIdle(peer);
  if (open < options_.max_connections) return true;
  return cut_ < kMaxCut && CutIdle(budgets_.largest());
}

bool Connections::CutIdle(const Peer& peer) {
  const Entry* longest = nullptr;
  // Connections that have never had a call are cut first.
  const auto rank = [](const Entry& entry) {
    return std::pair(entry.context != nullptr, entry.connection->idle_since());
  };
  for (const auto& [duplicate, entry] : entries_) {
    const Connection& connection = *entry.connection;
    if (!(connection.peer() == peer) || connection.has_ended() || connection.idle_since() == kNever) continue;
    if (longest == nullptr || rank(entry) < rank(*longest)) longest = &entry;
  }
  if (longest == nullptr) return false;
  Cut(*longest);
  return true;
}

void Connections::Remove(int duplicate) {
  std::shared_ptr<const void> context;  // destroyed after the lock is released
  MutexLock lock(&mutex_);
  const auto found = entries_.find(duplicate);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (entry.connection->has_ended()) {
    --cut_;
  } else {
    budgets_.RemoveConnection(entry.connection->peer());
  }
  entry.connection->SetEnded();
  DropUnread(duplicate);
  context = std::move(entry.context);
  by_context_.erase(context.get());
  by_number_[entry.connection->number()].duplicate = -1;
  ended_.push_back(entry.connection->number());
  if (ended_.size() > kMaxEnded) {
    by_number_.erase(ended_.front());
    ended_.pop_front();
  }
  entries_.erase(found);
}

std::shared_ptr<Connection> Connections::Find(const void* context,
                                              absl::FunctionRef<FirstCall()> first_call) {
  {
    MutexLock lock(&mutex_);
    const auto found = by_context_.find(context);
    if (found != by_context_.end()) return found->second;
  }
  FirstCall first = first_call();
  const std::optional<std::uint64_t> number = NumberInPeerName(first.peer_name);
  if (!number.has_value()) return Forgotten();
  MutexLock lock(&mutex_);
  const auto known = by_number_.find(*number);
  if (known == by_number_.end()) return Forgotten();
  if (known->second.duplicate >= 0) {
    entries_[known->second.duplicate].context = std::move(first.context);
    by_context_[context] = known->second.connection;
  }
  return known->second.connection;
}

void Connections::CountAnswered(Connection& connection, int calls) {
  MutexLock lock(&mutex_);
  budgets_.CountAnswered(connection.peer(), calls);
}

void Connections::CountFutile(Connection& connection) {
  if (connection.number() == 0) return;  // an unknown connection
  const bool has_many = connection.CountFutile() > kFutileCallsMin;
  {
    MutexLock lock(&mutex_);
    if (budgets_.CountFutile(connection.peer(), MonotonicClock::now())) return;
    if (!has_many && connection.has_answered()) return;
    const auto known = by_number_.find(connection.number());
    if (known == by_number_.end() || known->second.duplicate < 0 || connection.has_ended()) return;
    Cut(entries_[known->second.duplicate]);
    for (const auto& [duplicate, entry] : entries_) {
      if (entry.connection->peer() == connection.peer() && !entry.connection->has_answered()) Cut(entry);
    }
  }
  log_.Write("warning", "connections cut: their client cancels its calls",
             {{"peer", ToString(connection.peer())}, {"client", connection.name()}});
}

void Connections::Cut(const Entry& entry) {
  if (entry.connection->has_ended()) return;
  entry.connection->SetEnded();
  ++cut_;
  budgets_.RemoveConnection(entry.connection->peer());
  CutConnection(entry.duplicate.get());
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
  return std::any_of(entries_.begin(), entries_.end(), [](const auto& connection) {
    int bytes = 0;
    return ioctl(connection.first, SIOCOUTQ, &bytes) == 0 && bytes > 0;
  });
}

void Connections::CutHalfClosed(absl::Duration longest) {
  const MonotonicTime now = MonotonicClock::now();
  MutexLock lock(&mutex_);
  for (auto& [number, connection] : entries_) {
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
    for (const auto& [number, connection] : entries_) {
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
  return static_cast<int>(entries_.size());
}

}  // namespace warpline
