#include "server/rpc/acceptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/clock.h"
#include "server/observe/log.h"

namespace warpline {
namespace {

// How many connections are accepted from one socket before other sockets, and connections that have ended,
// are handled.
constexpr int kAcceptBatch = 64;
// How many connections are accepted from one socket when it is closed. Its backlog is not longer.
constexpr int kLastBatch = 4096;
// How long accepting stops if not even the reserve descriptor can be opened again.
constexpr absl::Duration kPause = absl::Milliseconds(50);
// How often to look for two kinds of connections: those that were ended by the server but not by their
// clients, and those of proxies that have not named their client yet.
constexpr absl::Duration kLookPeriod = absl::Seconds(1);
constexpr absl::Duration kHeaderTime = absl::Seconds(5);
constexpr std::size_t kMaxNameless = 256;

// Also makes the kernel notice the end of connections without calls. gRPC pings only connections with calls,
// so nothing else would notice that the client's host, or the link to it, is gone.
void SetTcpOptions(int connection, absl::Duration user_timeout) {
  const auto set = [connection](int level, int name, std::int64_t value) {
    const int option = static_cast<int>(value);
    setsockopt(connection, level, name, &option, sizeof(option));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, absl::ToInt64Milliseconds(user_timeout));
  // The kernel closes the connection if its probes get no answer within the user timeout. It starts to probe
  // after half of that time, so that one lost packet does no harm. These options are in seconds.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, std::max<std::int64_t>(1, absl::ToInt64Seconds(user_timeout / 2)));
  set(IPPROTO_TCP, TCP_KEEPINTVL, std::max<std::int64_t>(1, absl::ToInt64Seconds(user_timeout / 10)));
}

UniqueFd OpenReserve() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Listen(Options options, Connections& connections) {
  std::unique_ptr<Acceptor> acceptor(new Acceptor(std::move(options), connections));
  RETURN_IF_ERROR(acceptor->Prepare());
  return acceptor;
}

Acceptor::Acceptor(Options options, Connections& connections)
    : options_(std::move(options)), connections_(connections) {}

absl::Status Acceptor::Prepare() {
  for (std::vector<Listener>* listeners : {&options_.listen, &options_.proxy_listen}) {
    for (Listener& listener : *listeners) RETURN_IF_ERROR(listener.Listen());
  }
  epoll_.Reset(epoll_create1(EPOLL_CLOEXEC));
  wake_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  reserve_ = OpenReserve();
  if (!epoll_.ok() || !wake_.ok() || !reserve_.ok()) {
    return absl::UnavailableError(absl::StrCat("cannot create a listening socket: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

Acceptor::~Acceptor() { Stop(); }

std::vector<std::string> Acceptor::AddressesOf(const std::vector<Listener>& listeners) {
  std::vector<std::string> addresses;
  for (const Listener& listener : listeners) addresses.push_back(listener.address());
  return addresses;
}

bool Acceptor::Watch(int fd, std::uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Acceptor::Start(Deliver deliver) {
  deliver_ = std::move(deliver);
  Watch(wake_.get(), EPOLLIN);
  Listening(true);
  thread_ = std::thread([this] { Loop(); });
}

void Acceptor::StopListening() {
  if (!thread_.joinable() || closing_listeners_.exchange(true)) return;
  WakeUp();
  listeners_closed_.get_future().wait();
}

void Acceptor::Stop() {
  if (thread_.joinable()) {
    stopping_ = true;
    WakeUp();
    thread_.join();
  }
  options_.listen.clear();
  options_.proxy_listen.clear();
  nameless_.clear();
}

void Acceptor::WakeUp() {
  const std::uint64_t one = 1;
  static_cast<void>(!write(wake_.get(), &one, sizeof(one)));
}

// Accepts the connections in the backlog before it closes the listeners. Otherwise they would be reset,
// although their clients believe that they are connected.
void Acceptor::CloseListeners() {
  VisitListening([this](int fd) {
    for (int taken = 0; taken < kLastBatch && AcceptFrom(fd); ++taken) {
    }
  });
  Listening(false);
  options_.listen.clear();
  options_.proxy_listen.clear();
}

void Acceptor::VisitListening(absl::FunctionRef<void(int)> visit) const {
  for (const std::vector<Listener>* listeners : {&options_.listen, &options_.proxy_listen}) {
    for (const Listener& listener : *listeners) {
      for (const UniqueFd& fd : listener.sockets()) visit(fd.get());
    }
  }
}

void Acceptor::Listening(bool on) {
  VisitListening([&](int fd) {
    if (on) {
      Watch(fd, EPOLLIN);
    } else {
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    }
  });
}

bool Acceptor::Has(const std::vector<Listener>& listeners, int fd) {
  return std::any_of(listeners.begin(), listeners.end(), [fd](const Listener& listener) {
    const std::vector<UniqueFd>& sockets = listener.sockets();
    return std::any_of(sockets.begin(), sockets.end(),
                       [fd](const UniqueFd& socket) { return socket.get() == fd; });
  });
}

void Acceptor::Loop() {
  for (;;) {
    const MonotonicTime now = MonotonicClock::now();
    const bool paused = paused_until_.has_value();
    if (paused && now >= *paused_until_) {
      paused_until_.reset();
      if (!reserve_.ok()) reserve_ = OpenReserve();
      Listening(true);
      continue;
    }
    std::array<epoll_event, 64> events;
    CloseNameless(now);
    const absl::Duration wait = paused                                         ? kPause
                                : options_.closes_gently || !nameless_.empty() ? kLookPeriod
                                                                               : absl::InfiniteDuration();
    const int wait_ms =
        wait == absl::InfiniteDuration() ? -1 : static_cast<int>(absl::ToInt64Milliseconds(wait));
    if (options_.closes_gently && now >= next_look_) {
      connections_.CutHalfClosed(options_.user_timeout);
      next_look_ = After(kLookPeriod);
    }
    evicted_.clear();
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == wake_.get()) {
        std::uint64_t times = 0;
        static_cast<void>(!read(wake_.get(), &times, sizeof(times)));
        if (stopping_) return;
        CloseListeners();
        listeners_closed_.set_value();
        break;  // other events may be for closed sockets; those of connections are reported again
      }
      if (nameless_.contains(fd)) {
        ReadHeader(fd);
      } else if (Has(options_.listen, fd) || Has(options_.proxy_listen, fd)) {
        for (int taken = 0; taken < kAcceptBatch && AcceptFrom(fd); ++taken) {
        }
      } else {
        // Closing the duplicate does not remove it from epoll, because gRPC may still have its own descriptor
        // of the same connection.
        epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
        connections_.Remove(fd);
      }
    }
  }
}

bool Acceptor::AcceptFrom(int listening) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  UniqueFd connection(
      accept4(listening, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (connection.ok()) {
    if (Has(options_.proxy_listen, listening)) {
      AwaitHeader(std::move(connection), peer);
    } else {
      Take(std::move(connection), peer, std::nullopt);
    }
    return true;
  }
  switch (errno) {
    case EAGAIN:
      return false;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      OutOfDescriptors(listening);
      return !paused_until_.has_value();
    default:  // the error concerns only this connection, e.g. ECONNABORTED
      return true;
  }
}

void Acceptor::AwaitHeader(UniqueFd socket, const sockaddr_storage& address) {
  const int fd = socket.get();
  if (nameless_.size() >= kMaxNameless) {
    // A proxy sends its header at once, so the connection that has waited longest is probably not from a
    // proxy.
    const auto oldest =
        std::min_element(nameless_.begin(), nameless_.end(),
                         [](const auto& a, const auto& b) { return a.second.deadline < b.second.deadline; });
    evicted_.push_back(std::move(oldest->second.socket));
    nameless_.erase(oldest);
    WarnRefused(
        "too many connections to --proxy-listen have not said yet whose they are: the oldest of them");
  }
  if (!Watch(fd, EPOLLIN)) return WarnRefused(std::strerror(errno));
  nameless_[fd] = {
      .socket = std::move(socket), .address = address, .header = {}, .deadline = After(kHeaderTime)};
  ReadHeader(fd);  // proxies send their header at once
}

void Acceptor::ReadHeader(int fd) {
  const auto found = nameless_.find(fd);
  const ProxyHeader::State state = found->second.header.Read(fd);
  if (state == ProxyHeader::State::kIncomplete) return;
  Nameless named = std::move(found->second);
  nameless_.erase(found);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  if (state == ProxyHeader::State::kInvalid) {
    return WarnRefused("it did not begin with a header of PROXY protocol version 2, as --proxy-listen wants");
  }
  Take(std::move(named.socket), named.address, named.header.source());
}

void Acceptor::CloseNameless(MonotonicTime now) {
  if (absl::erase_if(nameless_, [now](const auto& entry) { return entry.second.deadline <= now; }) > 0) {
    WarnRefused("it did not send the header of PROXY protocol version 2 within 5 s");
  }
}

void Acceptor::Take(UniqueFd socket, const sockaddr_storage& address,
                    const std::optional<sockaddr_storage>& source) {
  if (address.ss_family == AF_INET || address.ss_family == AF_INET6) {
    SetTcpOptions(socket.get(), options_.user_timeout);
  }
  const sockaddr_storage& client = source.has_value() ? *source : address;
  const auto added = connections_.Add(socket.get(), PeerOf(client, socket.get()), ConnectionName(client));
  if (!added.ok()) return WarnRefused({added.status().message().data(), added.status().message().size()});
  // No event is asked for, because epoll reports hang-ups in any case.
  if (!Watch(added->duplicate, 0)) {
    WarnRefused(std::strerror(errno));
    connections_.Remove(added->duplicate);
    return;
  }
  deliver_(socket.Release(), address.ss_family == AF_UNIX ? Kind::kUnix : Kind::kNetwork, added->number);
}

// Closes the reserve descriptor to accept one connection and close it. Otherwise its client would wait in the
// backlog forever, and the pending connection would wake this thread again and again.
void Acceptor::OutOfDescriptors(int listening) {
  WarnRefused("the process has no descriptor left");
  reserve_.Reset();
  UniqueFd(accept4(listening, nullptr, nullptr, SOCK_CLOEXEC)).Reset();
  reserve_ = OpenReserve();
  if (reserve_.ok()) return;
  // Another thread has taken the descriptor meanwhile, so stop accepting for a while.
  Listening(false);
  paused_until_ = After(kPause);
}

void Acceptor::WarnRefused(std::string_view why) {
  ++refused_;
  if (MonotonicClock::now() < next_warning_) return;
  Log("warning", "connection refused",
      {{"reason", std::string(why)},
       {"open", absl::StrCat(connections_.size())},
       {"limit", absl::StrCat(connections_.max_connections())},
       {"refused_since_last", absl::StrCat(refused_)}});
  next_warning_ = After(absl::Seconds(1));
  refused_ = 0;
}

}  // namespace warpline
