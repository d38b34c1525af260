#include "tests/fuzz/region_check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/device/cpu_backend.h"
#include "tests/fuzz/documented_error.h"

namespace warpline::testing {
namespace {

using absl::StatusCode;

constexpr OwnerId kOwner = 1;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kMaxRegions = 6, kMaxBytes = 10 * kPage;
// A call that no message names but for great luck.
constexpr std::int64_t kMarker = 0x6b2d7d7030c311d1;
constexpr int kInvalid = static_cast<int>(StatusCode::kInvalidArgument);
constexpr int kNotFound = static_cast<int>(StatusCode::kNotFound);

std::string MakeFolder() {
  std::string folder = "/tmp/region_check.XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  return folder;
}

std::unique_ptr<Backend> MakeBackend() {
  auto backend = CreateCpuBackend({});
  if (!backend.ok()) std::abort();
  return *std::move(backend);
}

// Without blocks it has holes.
UniqueFd Memfd(std::size_t bytes, int seals, bool with_blocks = true) {
  UniqueFd fd(memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const int made = with_blocks ? posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes))
                               : ftruncate(fd.get(), static_cast<off_t>(bytes));
  if (made != 0 || (seals != 0 && fcntl(fd.get(), F_ADD_SEALS, seals) != 0)) std::abort();
  return fd;
}

}  // namespace

FuzzedCall AnyRegionCall(MessageMutator& random) {
  constexpr RegionCall kOften[] = {RegionCall::kOpen, RegionCall::kPacket, RegionCall::kPacket,
                                   RegionCall::kUse};
  FuzzedCall call;
  const auto method = random.OneIn(4) ? static_cast<RegionCall>(random.Below(kRegionCalls))
                                      : kOften[random.Below(std::size(kOften))];
  call.method = static_cast<std::uint8_t>(method);
  call.argument = static_cast<std::uint8_t>(random.OneIn(4) ? random.Below(256) : random.Below(2));
  switch (method) {
    case RegionCall::kOpen: {
      v1::OpenRequest request;
      request.set_size_bytes(static_cast<std::int64_t>(kPage << (random.OneIn(4) ? random.Below(5) : 0)));
      call.message = request.SerializeAsString();
      break;
    }
    case RegionCall::kPacket: {
      v1::RegionRequest request;
      if (random.OneIn(2)) {
        request.mutable_handover()->set_ticket(std::to_string(random.Below(3)));
        if (random.OneIn(2)) call.argument |= 4;  // with a good memfd
      } else {
        request.mutable_withdrawal()->set_call(static_cast<std::int64_t>(random.Below(4)));
        call.argument &= 3;
      }
      call.message = request.SerializeAsString();
      break;
    }
    case RegionCall::kUse: {
      v1::RegionSlice slice;
      slice.set_offset(static_cast<std::int64_t>(random.Below(80) * 64));
      slice.set_call(static_cast<std::int64_t>(random.Below(4)));
      call.message = slice.SerializeAsString();
      break;
    }
    default:
      break;
  }
  return call;
}

std::unique_ptr<google::protobuf::Message> NewRegionMessage(std::uint8_t method) {
  switch (static_cast<RegionCall>(method % kRegionCalls)) {
    case RegionCall::kOpen:
      return std::make_unique<v1::OpenRequest>();
    case RegionCall::kPacket:
      return std::make_unique<v1::RegionRequest>();
    case RegionCall::kUse:
      return std::make_unique<v1::RegionSlice>();
    default:
      return nullptr;
  }
}

RegionCheck::RegionCheck()
    : folder_(MakeFolder()),
      backend_(MakeBackend()),
      store_({.max_bytes = kMaxBytes,
              .max_regions = kMaxRegions,
              .max_regions_per_owner = kMaxRegions,
              .ticket_ttl = absl::Hours(24)},
             metrics_) {
  auto listener = Listener::BindForPackets(folder_ + "/socket", "the socket of regions");
  if (!listener.ok()) std::abort();
  RegionServer::Options options{.handover_timeout = absl::Hours(1)};
  options.listen.push_back(*std::move(listener));
  auto server = RegionServer::Start(std::move(options), store_, *backend_, workers_);
  if (!server.ok()) std::abort();
  server_ = *std::move(server);
  AddFiles();
}

RegionCheck::~RegionCheck() {
  server_.reset();
  std::remove((folder_ + "/socket").c_str());
  std::remove(folder_.c_str());
}

void RegionCheck::AddFiles() {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
  const auto keep = [this](UniqueFd fd) { return own_.emplace_back(std::move(fd)).get(); };
  const int page = keep(Memfd(kPage, kSeals)), two_pages = keep(Memfd(2 * kPage, kSeals));
  files_.push_back({});
  files_.push_back({.descriptors = {page}, .bytes = kPage});
  files_.push_back({.descriptors = {two_pages}, .bytes = 2 * kPage});
  files_.push_back({.descriptors = {page, two_pages}});
  files_.push_back({.descriptors = {keep(Memfd(kPage, 0))}});
  files_.push_back({.descriptors = {keep(Memfd(kPage, kSeals | F_SEAL_WRITE))}});
  files_.push_back({.descriptors = {keep(Memfd(kPage, kSeals, false))}});
  files_.push_back(
      {.descriptors = {keep(UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)))}, .can_be_sealed = false});
  files_.push_back({.descriptors = std::vector<int>(17, page), .can_arrive = false});
  files_.push_back({.descriptors = std::vector<int>(16, page)});
}

RegionCheck::Ticket* RegionCheck::Find(const std::string& text) {
  const auto found =
      std::find_if(tickets_.begin(), tickets_.end(), [&](const Ticket& t) { return t.text == text; });
  return found == tickets_.end() ? nullptr : &*found;
}

std::string RegionCheck::Check(const CallSequence& calls) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    ++counts_.calls;
    if (std::string flaw = Run(calls[i]); !flaw.empty()) return absl::StrCat("call ", i, ": ", flaw);
  }
  return CloseAll();
}

std::string RegionCheck::Run(const FuzzedCall& call) {
  Connection& connection = connections_[call.argument % connections_.size()];
  const std::size_t more = call.argument / connections_.size();
  switch (static_cast<RegionCall>(call.method % kRegionCalls)) {
    case RegionCall::kOpen:
      return Open(call.message);
    case RegionCall::kPacket:
      return SendPacket(call.message, connection, files_[more % files_.size()]);
    case RegionCall::kUse:
      return Use(call.message, connection, more * 64);
    case RegionCall::kRelease:
      return Release();
    case RegionCall::kClose:
      connection = Connection();
      return "";
  }
  return "";
}

std::string RegionCheck::Open(const std::string& message) {
  v1::OpenRequest request;
  // The service says that there are no negative sizes.
  if (!request.ParseFromString(message) || request.size_bytes() < 0) return "";
  const auto bytes = static_cast<std::size_t>(request.size_bytes());
  const absl::StatusOr<std::string> ticket = store_.Open(CallerWith(kOwner), bytes);
  if (!ticket.ok()) {
    if (std::string flaw = FlawOfError(ticket.status()); !flaw.empty()) return flaw;
    const bool is_invalid = bytes == 0 || bytes % kPage != 0;
    // The fill level depends on what a worker has yet to give back.
    return absl::IsInvalidArgument(ticket.status()) == is_invalid ? "" : "Open fails for another reason";
  }
  if (bytes == 0 || bytes % kPage != 0 || bytes > kMaxBytes) return "a ticket for a region that cannot be";
  tickets_.push_back({.text = *ticket, .bytes = bytes});
  return "";
}

std::string RegionCheck::Connect(Connection& connection) {
  connection.socket.Reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string path = folder_ + "/socket";
  std::memcpy(name.sun_path, path.data(), path.size());
  int connected = -1;
  do {
    connected = connect(connection.socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name));
  } while (connected != 0 && errno == EINTR);
  if (connected != 0) {
    return "nobody can connect";
  }
  const timeval patience{.tv_sec = 60, .tv_usec = 0};
  setsockopt(connection.socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  return "";
}

std::optional<v1::RegionReply> RegionCheck::Receive(const Connection& connection) {
  std::array<char, 65536> packet;
  ssize_t size = -1;
  do {  // libFuzzer looks for hangs by a signal
    size = recv(connection.socket.get(), packet.data(), packet.size(), 0);
  } while (size < 0 && errno == EINTR);
  if (size < 0 && errno != ECONNRESET) std::abort();  // it hangs
  if (size <= 0) return std::nullopt;
  v1::RegionReply reply;
  if (!reply.ParseFromArray(packet.data(), static_cast<int>(size))) std::abort();
  return reply;
}

int RegionCheck::ExpectedOf(const std::string& packet, const Connection& connection, const Files& files) {
  v1::RegionRequest request;
  if (packet.size() > kPage || !files.can_arrive || !files.can_be_sealed ||
      !request.ParseFromString(packet)) {
    return kInvalid;
  }
  if (request.has_handover()) {
    if (!connection.region.empty()) return kInvalid;
    Ticket* const ticket = Find(request.handover().ticket());
    if (ticket == nullptr || ticket->used) return kNotFound;
    ticket->used = true;
    return files.descriptors.size() == 1 && files.bytes == ticket->bytes ? 0 : kInvalid;
  }
  const bool can_withdraw = !connection.region.empty() && request.has_withdrawal() &&
                            files.descriptors.empty() && request.withdrawal().call() > 0;
  return can_withdraw ? 0 : kInvalid;
}

std::string RegionCheck::SendPacket(const std::string& message, Connection& connection, const Files& files) {
  v1::RegionRequest request;
  std::string packet = message;
  if (request.ParseFromString(packet) && request.has_handover() && request.handover().ticket().size() == 1) {
    const auto index = static_cast<std::size_t>(request.handover().ticket()[0] - '0');
    if (index < tickets_.size()) request.mutable_handover()->set_ticket(tickets_[index].text);
    packet = request.SerializeAsString();
  }
  if (packet.empty() && files.descriptors.empty()) return "";  // to the socket, that is its end
  if (!connection.socket.ok()) {
    if (std::string flaw = Connect(connection); !flaw.empty()) return flaw;
  }
  iovec data{packet.data(), packet.size()};
  std::vector<char> control(CMSG_SPACE(files.descriptors.size() * sizeof(int)));
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!files.descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(files.descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(part), files.descriptors.data(), files.descriptors.size() * sizeof(int));
  }
  ssize_t sent = -1;
  do {
    sent = sendmsg(connection.socket.get(), &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent != static_cast<ssize_t>(packet.size())) {
    return "the server has closed a connection that did nothing wrong";
  }
  const int expected = ExpectedOf(packet, connection, files);
  if (expected == 0 && request.has_withdrawal()) {
    const std::int64_t call = request.withdrawal().call();
    connection.withdrawn.insert(call);
    const bool in_use =
        call != kMarker && std::any_of(held_.begin(), held_.end(), [&](const HeldSlice& slice) {
          return slice.region == connection.region && slice.call == call;
        });
    if (in_use) {
      // The withdrawal is not answered yet: the answers that are awaited later show this. The server must
      // have the withdrawal before the use ends.
      connection.awaited.insert(call);
      request.mutable_withdrawal()->set_call(kMarker);
      return SendPacket(request.SerializeAsString(), connection, files_.front());
    }
  }
  const std::optional<v1::RegionReply> reply = Receive(connection);
  if (!reply.has_value()) return "a connection is closed without a reply";
  const int code = reply->has_error() ? reply->error().code() : 0;
  if (code != expected)
    return absl::StrCat("the reply to a packet is ", reply->ShortDebugString(), ", not ", expected);
  if (code != 0) {
    if (Receive(connection).has_value()) return "a connection goes on after an error";
    connection = Connection();
    return "";
  }
  if (request.has_withdrawal()) {
    ++counts_.ended;
    return reply->ended().call() == request.withdrawal().call() ? "" : "the end of another call";
  }
  if (!reply->has_ready()) return "a handover without a region";
  ++counts_.regions;
  connection.region = reply->ready().id();
  connection.bytes = Find(request.handover().ticket())->bytes;
  return "";
}

std::string RegionCheck::Use(const std::string& message, const Connection& connection, std::size_t bytes) {
  v1::RegionSlice slice;
  if (!slice.ParseFromString(message)) return "";
  const std::string id = connection.region.empty() ? slice.id() : connection.region;
  StatusCode expected = StatusCode::kOk;
  if (connection.region.empty()) {
    expected = StatusCode::kNotFound;
  } else if (slice.offset() < 0 || static_cast<std::uint64_t>(slice.offset()) > connection.bytes ||
             bytes > connection.bytes - static_cast<std::size_t>(slice.offset())) {
    expected = StatusCode::kOutOfRange;
  } else if (slice.call() < 0) {
    expected = StatusCode::kInvalidArgument;
  } else if (connection.withdrawn.count(slice.call()) > 0) {
    expected = StatusCode::kAborted;
  }
  absl::StatusOr<Buffer> used = store_.Use(kOwner, id, slice.offset(), bytes, slice.call());
  // An id that was changed may be any other server's.
  const bool is_foreign = connection.region.empty() && absl::IsFailedPrecondition(used.status());
  if (used.status().code() != expected && !is_foreign)
    return absl::StrCat("a use gives ", used.status().ToString());
  if (!used.ok()) return "";
  ++counts_.uses;
  if (used->bytes().size() != bytes) return "a slice of another length";
  std::fill(used->bytes().begin(), used->bytes().end(), std::byte{1});
  held_.push_back({.region = id, .call = slice.call(), .memory = *std::move(used)});
  return "";
}

std::string RegionCheck::Release() {
  if (held_.empty()) return "";
  HeldSlice slice = std::move(held_.front());
  held_.erase(held_.begin());
  const bool is_last = std::none_of(held_.begin(), held_.end(), [&](const HeldSlice& other) {
    return other.region == slice.region && other.call == slice.call;
  });
  slice.memory = Buffer();
  if (!is_last) return "";
  for (Connection& connection : connections_) {
    if (connection.region != slice.region || connection.awaited.erase(slice.call) == 0) continue;
    const std::optional<v1::RegionReply> reply = Receive(connection);
    if (!reply.has_value() || reply->ended().call() != slice.call)
      return "the end of a withdrawn call is not told";
    ++counts_.ended;
  }
  return "";
}

std::string RegionCheck::CloseAll() {
  // Memory that a connection still uses when it is closed lives until the use ends.
  const bool first = held_.size() % 2 == 0;
  if (first) held_.clear();
  for (Connection& connection : connections_) connection = Connection();
  held_.clear();
  for (const Ticket& ticket : tickets_) static_cast<void>(store_.Redeem(ticket.text));
  tickets_.clear();
  for (int i = 0; metrics_.regions.Value() != 0 || store_.size() != 0; ++i) {
    if (i > 100000) return absl::StrCat(metrics_.regions.Value(), " regions are left");
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return metrics_.region_bytes.Value() == 0 ? "" : "bytes are charged for nothing";
}

}  // namespace warpline::testing
