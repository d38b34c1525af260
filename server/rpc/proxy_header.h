// The header in which a proxy names the client of a connection.
#ifndef WARPLINE_SERVER_RPC_PROXY_HEADER_H_
#define WARPLINE_SERVER_RPC_PROXY_HEADER_H_

#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace warpline {

// A header of PROXY protocol version 2 (https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt), which
// each connection of the proxy begins with. Not thread-safe.
class ProxyHeader {
 public:
  enum class State { kIncomplete, kComplete, kInvalid };
  // The maximum size of a header, including the addresses and the proxy's additions.
  static constexpr std::size_t kMaxBytes = 2048;

  // Reads from the socket, which must be non-blocking, but never beyond the end of the header.
  State Read(int socket);
  // Adds bytes of the header, at most `missing`.
  State Append(std::string_view bytes);
  // Returns how many bytes may be read next; 0 if the header is complete or invalid.
  std::size_t missing() const;

  // Returns the client's address from a complete header. Nothing if the proxy connects for itself, for
  // example to check the server's health, or does not name a client.
  std::optional<sockaddr_storage> source() const;

 private:
  State Check() const;
  unsigned char At(std::size_t index) const { return static_cast<unsigned char>(bytes_[index]); }
  // Returns the size of the whole header. Valid only after the fixed part has arrived.
  std::size_t size() const;

  std::string bytes_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_PROXY_HEADER_H_
