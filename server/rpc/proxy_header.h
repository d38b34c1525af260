// The header by which a proxy describes the client for which it connects.
#ifndef WARPLINE_SERVER_RPC_PROXY_HEADER_H_
#define WARPLINE_SERVER_RPC_PROXY_HEADER_H_

#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace warpline {

// A header of PROXY protocol version 2 (https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt), with
// which each connection of the proxy begins. Not thread-safe.
class ProxyHeader {
 public:
  enum class State { kIncomplete, kComplete, kInvalid };
  // The maximum bytes of a header, with the addresses and whatever the proxy adds to them.
  static constexpr std::size_t kMaxBytes = 2048;

  // Reads from the socket, which does not block, and never beyond the end of the header.
  State Read(int socket);
  // Takes bytes of the header: at most as many as `missing`.
  State Append(std::string_view bytes);
  // How many bytes may be read next; 0 if the header is complete or invalid.
  std::size_t missing() const;

  // The client's address, of a complete header. Nothing if the proxy connects for itself, as to check the
  // server's health, or does not say for whom.
  std::optional<sockaddr_storage> source() const;

 private:
  State Check() const;
  unsigned char At(std::size_t index) const { return static_cast<unsigned char>(bytes_[index]); }
  // The size of the whole header. Call this only once the fixed part is there.
  std::size_t size() const;

  std::string bytes_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_PROXY_HEADER_H_
