#include "server/rpc/peer_naming.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>

namespace warpline {
namespace {

thread_local std::uint64_t number_in_scope = 0;  // 0: no scope

// gRPC prints the abstract name "x" of a unix socket as "unix-abstract:x".
constexpr std::string_view kPrefix = "unix-abstract:warpline-";
constexpr std::string_view kName = "warpline-";

}  // namespace

NamingScope::NamingScope(std::uint64_t number) { number_in_scope = number; }
NamingScope::~NamingScope() { number_in_scope = 0; }

std::optional<std::uint64_t> NumberInPeerName(std::string_view peer) {
  if (peer.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  peer.remove_prefix(kPrefix.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(peer.data(), peer.data() + peer.size(), number);
  if (error != std::errc() || end != peer.data() + peer.size()) return std::nullopt;
  return number;
}

}  // namespace warpline

// Replaces the C library's function in the whole program, even if gRPC is a shared library.
extern "C" __attribute__((visibility("default"))) int getpeername(int fd, sockaddr* address,
                                                                  socklen_t* size) noexcept {
  if (warpline::number_in_scope == 0) {
    return static_cast<int>(syscall(SYS_getpeername, fd, address, size));
  }
  sockaddr_un named{};
  named.sun_family = AF_UNIX;
  // An abstract name begins with a zero byte.
  char* const begin = std::copy(warpline::kName.begin(), warpline::kName.end(), named.sun_path + 1);
  const auto written =
      std::to_chars(begin, named.sun_path + sizeof(named.sun_path), warpline::number_in_scope);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                            static_cast<std::size_t>(written.ptr - named.sun_path));
  std::memcpy(address, &named, std::min(*size, bytes));
  *size = bytes;
  return 0;
}
