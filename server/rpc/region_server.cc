#include "server/rpc/region_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/observe/log.h"
#include "server/rpc/gentle_close.h"
#include "server/store/shared_memory.h"

namespace warpline {
namespace {

// The maximum bytes of a packet, as documented in the API.
constexpr std::size_t kMaxPacketBytes = 4096;
// A client may send more than the one descriptor that is expected. All must be received so that they can be
// closed.
constexpr std::size_t kMaxDescriptors = 16;
// If this many descriptors wait to be closed, nothing new is accepted.
constexpr std::size_t kMaxToClose = 64;
// How long accepting stops when the process has no descriptor left.
constexpr auto kPause = std::chrono::milliseconds(100);

struct Packet {
  std::string bytes;
  std::vector<UniqueFd> descriptors;
  bool cut_off = false;
};

// Returns nothing with errno 0 at the end of the connection.
std::optional<Packet> Receive(int socket) {
  std::array<char, kMaxPacketBytes> bytes;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control;
  iovec data{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return std::nullopt;
  Packet packet;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; at + CMSG_LEN(sizeof(int)) <= part->cmsg_len; at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + at, sizeof(int));
      packet.descriptors.emplace_back(descriptor);
    }
  }
  packet.cut_off = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  if (size == 0 && packet.descriptors.empty() && !packet.cut_off) {  // nobody sends empty packets
    errno = 0;
    return std::nullopt;
  }
  packet.bytes.assign(bytes.data(), static_cast<std::size_t>(size));
  return packet;
}

// The parts of a region. Parts that are not handed on are released in reverse order.
struct Registered {
  RegionStore::Reservation reservation;
  Buffer mapping;
  std::shared_ptr<void> registration;
};

// Calls `is_wanted` before each step, because each step takes a while.
absl::StatusOr<Registered> Register(RegionStore::Reservation reservation, int memory, Backend& backend,
                                    const std::function<bool()>& is_wanted) {
  const absl::Status gone = absl::CancelledError("the connection was closed");
  Registered registered;
  const std::size_t bytes = reservation.bytes();
  if (!is_wanted()) return gone;
  RETURN_IF_ERROR(CheckShareable(memory, bytes));
  ASSIGN_OR_RETURN(registered.mapping, MapShared(memory, bytes));
  if (!is_wanted()) return gone;
  ASSIGN_OR_RETURN(registered.registration, backend.RegisterHost(registered.mapping.bytes()));
  registered.reservation = std::move(reservation);
  return registered;
}

v1::RegionReply ErrorReply(const absl::Status& status) {
  v1::RegionReply reply;
  reply.mutable_error()->set_code(static_cast<int>(status.code()));
  reply.mutable_error()->set_message(std::string(status.message()));
  return reply;
}

}  // namespace

// A client's connection. It is closed when nobody refers to it any more: the ends of jobs may still have to
// be reported on it.
class RegionServer::Connection {
 public:
  enum class State {
    kNew,          // waits for its ticket
    kRegistering,  // its memory is being registered, by a worker
    kOpen,         // it has a region
  };
  Connection(UniqueFd socket, MonotonicTime deadline) : socket_(std::move(socket)), deadline_(deadline) {}

  int descriptor() const { return socket_.get(); }
  // Thread-safe. A client that does not read its replies is disconnected; the server's thread then sees the
  // hang-up.
  void Send(const v1::RegionReply& reply) const {
    const std::string bytes = reply.SerializeAsString();
    if (send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) CutOff();
  }
  void CutOff() const { CutConnection(socket_.get()); }
  bool IsLate(MonotonicTime now) const {
    MutexLock lock(&mutex_);
    return state_ == State::kNew && now >= deadline_;
  }
  bool IsNew() const {
    MutexLock lock(&mutex_);
    return state_ == State::kNew;
  }
  bool closed() const {
    MutexLock lock(&mutex_);
    return closed_;
  }
  bool StartRegistering() {
    MutexLock lock(&mutex_);
    if (state_ != State::kNew) return false;
    state_ = State::kRegistering;
    return true;
  }
  // Returns false if the connection was closed meanwhile.
  bool Opened(const std::string& id) {
    MutexLock lock(&mutex_);
    if (closed_) return false;
    state_ = State::kOpen;
    id_ = id;
    return true;
  }
  // Returns the id of the region, if there is one yet.
  std::optional<std::string> id() const {
    MutexLock lock(&mutex_);
    return state_ == State::kOpen ? std::optional(id_) : std::nullopt;
  }
  void MarkClosed() {
    MutexLock lock(&mutex_);
    closed_ = true;
  }

 private:
  const UniqueFd socket_;
  const MonotonicTime deadline_;
  mutable Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kNew;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::string id_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<RegionServer>> RegionServer::Start(Options options, RegionStore& regions,
                                                                  Backend& backend, WorkerPool& workers) {
  std::unique_ptr<RegionServer> server(new RegionServer(std::move(options), regions, backend, workers));
  RETURN_IF_ERROR(server->Prepare());
  server->thread_ = std::thread([raw = server.get()] { raw->Loop(); });
  return server;
}

absl::Status RegionServer::Prepare() {
  for (Listener& listener : options_.listen) RETURN_IF_ERROR(listener.Listen());
  epoll_.Reset(epoll_create1(EPOLL_CLOEXEC));
  wake_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.ok() || !wake_.ok()) {
    return absl::UnavailableError(absl::StrCat("serving regions: ", std::strerror(errno)));
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake_.get();
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
  Listening(true);
  return absl::OkStatus();
}

RegionServer::~RegionServer() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    static_cast<void>(!write(wake_.get(), &one, sizeof(one)));
    thread_.join();
  }
  while (!connections_.empty()) Close(connections_.begin()->second);
}

void RegionServer::Listening(bool on) {
  for (const Listener& listener : options_.listen) {
    for (const UniqueFd& socket : listener.sockets()) {
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.fd = socket.get();
      epoll_ctl(epoll_.get(), on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, socket.get(), &event);
    }
  }
  resume_ = on ? kNever : MonotonicClock::now() + kPause;
}

void RegionServer::Loop() {
  constexpr int kTickMs = 1000, kPausedTickMs = 50;
  for (;;) {
    std::array<epoll_event, 64> events;
    const int wait_ms = resume_ == kNever ? kTickMs : kPausedTickMs;
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms);
    for (int i = 0; i < count; ++i) {
      const int descriptor = events[static_cast<std::size_t>(i)].data.fd;
      if (descriptor == wake_.get()) return;
      if (const auto found = connections_.find(descriptor); found != connections_.end()) {
        OnEvent(ConnectionPtr(found->second));
      } else {
        AcceptFrom(descriptor);
      }
    }
    if (MonotonicClock::now() >= resume_) Listening(true);
    CloseLate();
    regions_.DropExpiredTickets();
  }
}

// If a socket is closed with unread data, it is reset, and the client would not get the reply. So further
// data is refused, and data that has arrived is discarded.
void RegionServer::Refuse(UniqueFd socket, const absl::Status& why) {
  const Connection refused(std::move(socket), kNever);
  refused.Send(ErrorReply(why));
  shutdown(refused.descriptor(), SHUT_RD);
  while (std::optional<Packet> packet = Receive(refused.descriptor())) {
    for (UniqueFd& descriptor : packet->descriptors) closer_.Close(std::move(descriptor));
  }
}

void RegionServer::AcceptFrom(int listening) {
  UniqueFd socket(accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.ok()) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
    Log("warning", "no region connection is accepted for a while", {{"reason", std::strerror(errno)}});
    Listening(false);
    return;
  }
  const auto is_new = [](const auto& entry) { return entry.second->IsNew(); };
  const auto without_ticket = std::count_if(connections_.begin(), connections_.end(), is_new);
  if (connections_.size() >= options_.max_connections || closer_.waiting() > kMaxToClose ||
      static_cast<std::size_t>(without_ticket) >= options_.max_connections / 8 + 1) {
    return Refuse(std::move(socket),
                  absl::ResourceExhaustedError(absl::StrCat(
                      "the server is full: ", connections_.size(), " connections of regions, of which ",
                      without_ticket, " have shown no ticket yet; the limit is ", options_.max_connections)));
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = socket.get();
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) return;
  const int descriptor = socket.get();
  connections_[descriptor] = std::make_shared<Connection>(
      std::move(socket), MonotonicClock::now() + absl::ToChronoNanoseconds(options_.handover_timeout));
}

void RegionServer::OnEvent(const ConnectionPtr& connection) {
  std::optional<Packet> packet = Receive(connection->descriptor());
  if (!packet.has_value()) {
    if (errno != EAGAIN && errno != EINTR) Close(connection);
    return;
  }
  const auto refuse = [&](const char* why) {
    connection->Send(ErrorReply(absl::InvalidArgumentError(why)));
    Close(connection);
  };
  bool foreign = false;
  for (UniqueFd& descriptor : packet->descriptors) {
    if (CanBeSealed(descriptor.get())) continue;
    foreign = true;
    closer_.Close(std::move(descriptor));
  }
  if (packet->cut_off)
    return refuse("a packet of more than 4096 bytes, or with descriptors that did not arrive");
  if (foreign) return refuse("handover: the descriptor is no memfd");
  v1::RegionRequest request;
  if (!request.ParseFromString(packet->bytes)) return refuse("a packet that is no RegionRequest");
  OnPacket(connection, request, std::move(packet->descriptors));
}

void RegionServer::OnPacket(const ConnectionPtr& connection, const v1::RegionRequest& request,
                            std::vector<UniqueFd> descriptors) {
  const auto refuse = [&](const absl::Status& status) {
    connection->Send(ErrorReply(status));
    Close(connection);
  };
  if (request.has_handover()) {
    if (!connection->StartRegistering()) {
      return refuse(absl::InvalidArgumentError("handover: the connection has had one already"));
    }
    absl::StatusOr<RegionStore::Reservation> reservation = regions_.Redeem(request.handover().ticket());
    if (!reservation.ok()) return refuse(reservation.status());
    if (descriptors.size() != 1) {
      return refuse(absl::InvalidArgumentError(
          absl::StrCat("handover: came with ", descriptors.size(), " descriptors; it must be one")));
    }
    workers_.Post([connection, reservation = *std::move(reservation), memory = std::move(descriptors.front()),
                   &regions = regions_, &backend = backend_, &workers = workers_]() mutable {
      HandOver(connection, std::move(reservation), std::move(memory), regions, backend, workers);
    });
    return;
  }
  const std::optional<std::string> id = connection->id();
  if (!id.has_value()) {
    return refuse(
        absl::InvalidArgumentError("the first packet must be a handover, and its reply must be awaited"));
  }
  if (!request.has_withdrawal() || !descriptors.empty()) {
    return refuse(
        absl::InvalidArgumentError("after the handover only withdrawals are allowed, without descriptors"));
  }
  const std::int64_t call = request.withdrawal().call();
  if (call <= 0) {
    return refuse(absl::InvalidArgumentError(absl::StrCat("withdrawal.call: ", call, " is not above 0")));
  }
  regions_.Withdraw(*id, call, [connection, call] {
    v1::RegionReply reply;
    reply.mutable_ended()->set_call(call);
    connection->Send(reply);
  });
}

void RegionServer::HandOver(const ConnectionPtr& connection, RegionStore::Reservation reservation,
                            UniqueFd memory, RegionStore& regions, Backend& backend, WorkerPool& workers) {
  const OwnerId owner = reservation.owner();
  absl::StatusOr<Registered> registered =
      Register(std::move(reservation), memory.get(), backend, [&] { return !connection->closed(); });
  memory.Reset();
  if (!registered.ok()) {
    connection->Send(ErrorReply(registered.status()));
    return connection->CutOff();
  }
  const std::span<std::byte> bytes = registered->mapping.bytes();
  const Place place = registered->mapping.place();
  // The thread that drops the last reference has other work to do, and freeing gigabytes takes a while.
  const std::shared_ptr<void> keep(new Registered(*std::move(registered)), [&workers](void* gone) {
    workers.Post([gone] { delete static_cast<Registered*>(gone); });
  });
  const std::string id = regions.Add(owner, Buffer(bytes, place, keep));
  if (!connection->Opened(id)) return regions.Remove(id);
  v1::RegionReply reply;
  reply.mutable_ready()->set_id(id);
  connection->Send(reply);
}

void RegionServer::Close(ConnectionPtr connection) {  // NOLINT(performance-unnecessary-value-param)
  connection->MarkClosed();
  if (const std::optional<std::string> id = connection->id(); id.has_value()) regions_.Remove(*id);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection->descriptor(), nullptr);
  connections_.erase(connection->descriptor());
  connection->CutOff();
}

void RegionServer::CloseLate() {
  const MonotonicTime now = MonotonicClock::now();
  std::vector<ConnectionPtr> late;
  for (const auto& [descriptor, connection] : connections_) {
    if (connection->IsLate(now)) late.push_back(connection);
  }
  for (const ConnectionPtr& connection : late) Close(connection);
}

}  // namespace warpline
