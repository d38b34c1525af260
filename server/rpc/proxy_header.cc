#include "server/rpc/proxy_header.h"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace warpline {
namespace {

constexpr std::string_view kSignature("\r\n\r\n\0\r\nQUIT\n", 12);
// The fixed part: the signature, the version and the command, the family and the transport, and the length of
// the rest in network byte order.
constexpr std::size_t kFixedBytes = 16, kVersionAt = 12, kFamilyAt = 13, kLengthAt = 14;
constexpr unsigned kLocal = 0, kProxy = 1;
constexpr unsigned kIpv4 = 1, kIpv6 = 2;  // the upper four bits of the family
// Two addresses and two ports.
constexpr std::size_t kIpv4Bytes = 12, kIpv6Bytes = 36;

}  // namespace

std::size_t ProxyHeader::size() const {
  return kFixedBytes + static_cast<std::size_t>(At(kLengthAt)) * 256 + At(kLengthAt + 1);
}

ProxyHeader::State ProxyHeader::Check() const {
  const std::size_t signed_bytes = std::min(bytes_.size(), kSignature.size());
  if (bytes_.compare(0, signed_bytes, kSignature.substr(0, signed_bytes)) != 0) return State::kInvalid;
  if (bytes_.size() < kFixedBytes) return State::kIncomplete;
  const unsigned version = At(kVersionAt) >> 4, command = At(kVersionAt) & 15;
  const unsigned family = At(kFamilyAt) >> 4;
  if (version != 2 || command > kProxy || size() > kMaxBytes) return State::kInvalid;
  const std::size_t addresses = family == kIpv4 ? kIpv4Bytes : family == kIpv6 ? kIpv6Bytes : 0;
  if (command == kProxy && size() < kFixedBytes + addresses) return State::kInvalid;
  return bytes_.size() < size() ? State::kIncomplete : State::kComplete;
}

std::size_t ProxyHeader::missing() const {
  if (Check() != State::kIncomplete) return 0;
  return (bytes_.size() < kFixedBytes ? kFixedBytes : size()) - bytes_.size();
}

ProxyHeader::State ProxyHeader::Append(std::string_view bytes) {
  bytes_ += bytes;
  return Check();
}

ProxyHeader::State ProxyHeader::Read(int socket) {
  State state = Check();
  while (state == State::kIncomplete) {
    std::array<char, kMaxBytes> buffer;
    const ssize_t count = recv(socket, buffer.data(), missing(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return State::kIncomplete;
    if (count <= 0) return State::kInvalid;
    state = Append({buffer.data(), static_cast<std::size_t>(count)});
  }
  return state;
}

std::optional<sockaddr_storage> ProxyHeader::source() const {
  if ((At(kVersionAt) & 15) == kLocal) return std::nullopt;
  sockaddr_storage address{};
  const char* const from = bytes_.data() + kFixedBytes;
  switch (At(kFamilyAt) >> 4) {
    case kIpv4: {
      sockaddr_in v4{};
      v4.sin_family = AF_INET;
      std::memcpy(&v4.sin_addr, from, sizeof(v4.sin_addr));
      std::memcpy(&v4.sin_port, from + 8, sizeof(v4.sin_port));
      std::memcpy(&address, &v4, sizeof(v4));
      return address;
    }
    case kIpv6: {
      sockaddr_in6 v6{};
      v6.sin6_family = AF_INET6;
      std::memcpy(&v6.sin6_addr, from, sizeof(v6.sin6_addr));
      std::memcpy(&v6.sin6_port, from + 32, sizeof(v6.sin6_port));
      std::memcpy(&address, &v6, sizeof(v6));
      return address;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace warpline
