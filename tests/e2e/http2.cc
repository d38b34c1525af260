#include "tests/e2e/http2.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <stdexcept>

namespace warpline {
namespace {

constexpr std::uint8_t kHeadersFrame = 1, kResetFrame = 3, kSettingsFrame = 4;
constexpr std::uint8_t kEndHeaders = 4;

// A field of a header block as a literal that enters no table, both of its strings shorter than 127 bytes.
std::string Field(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) +
         value;
}

std::string BigEndian32(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

}  // namespace

UniqueFd Connect(const std::string& address) {
  const bool path = address.rfind("unix:", 0) == 0;
  UniqueFd fd(socket(path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval minute{.tv_sec = 60, .tv_usec = 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof(minute));
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &minute, sizeof(minute));
  sockaddr_un unix_name{};
  sockaddr_in port_name{};
  if (path) {
    unix_name.sun_family = AF_UNIX;
    address.copy(unix_name.sun_path, sizeof(unix_name.sun_path) - 1, 5);
  } else {
    const std::size_t colon = address.rfind(':');
    port_name.sin_family = AF_INET;
    port_name.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
    inet_pton(AF_INET, address.substr(0, colon).c_str(), &port_name.sin_addr);
  }
  const auto* name =
      path ? reinterpret_cast<const sockaddr*>(&unix_name) : reinterpret_cast<const sockaddr*>(&port_name);
  const socklen_t size = path ? sizeof(unix_name) : sizeof(port_name);
  if (connect(fd.get(), name, size) != 0) throw std::runtime_error("cannot connect to " + address);
  return fd;
}

Http2Client::Http2Client(const std::string& address, const std::string& first) : fd_(Connect(address)) {
  unsent_ = first + "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  Frame(kSettingsFrame, 0, 0, "");
  Flush();
}

bool Http2Client::AwaitServer() {
  char byte = 0;
  return recv(fd_.get(), &byte, 1, 0) == 1;
}

void Http2Client::Headers(std::uint32_t stream, const std::string& path) {
  Frame(kHeadersFrame, kEndHeaders, stream,
        Field(":method", "POST") + Field(":scheme", "http") + Field(":path", path) +
            Field(":authority", "test") + Field("te", "trailers") +
            Field("content-type", "application/grpc"));
}

void Http2Client::Reset(std::uint32_t stream) {
  constexpr std::uint32_t kCancel = 8;
  Frame(kResetFrame, 0, stream, BigEndian32(kCancel));
}

void Http2Client::Frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream,
                        const std::string& payload) {
  unsent_ += BigEndian32(static_cast<std::uint32_t>(payload.size())).substr(1);
  unsent_ += static_cast<char>(type);
  unsent_ += static_cast<char>(flags);
  unsent_ += BigEndian32(stream) + payload;
}

bool Http2Client::Flush() {
  std::size_t sent = 0;
  while (sent < unsent_.size()) {
    if (!DropReceived()) return false;
    const ssize_t n =
        send(fd_.get(), unsent_.data() + sent, unsent_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN) return false;
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
      continue;
    }
    pollfd either{.fd = fd_.get(), .events = POLLIN | POLLOUT, .revents = 0};
    if (poll(&either, 1, 60000) <= 0 || (either.revents & (POLLHUP | POLLERR)) != 0) return false;
  }
  unsent_.clear();
  return true;
}

bool Http2Client::DropReceived() {
  char buffer[65536];
  ssize_t n = 0;
  while ((n = recv(fd_.get(), buffer, sizeof(buffer), MSG_DONTWAIT)) > 0) {
  }
  return n < 0 && errno == EAGAIN;
}

}  // namespace warpline
