// HTTP/2 by hand, for what no client library would do.
#ifndef WARPLINE_TESTS_E2E_HTTP2_H_
#define WARPLINE_TESTS_E2E_HTTP2_H_

#include <cstdint>
#include <string>

#include "server/base/unique_fd.h"

namespace warpline {

// A connected, blocking socket whose operations give up after a minute. `address` is "host:port" with a
// numeric IPv4 host, or "unix:/path".
UniqueFd Connect(const std::string& address);

// One connection. Frames are collected until Flush.
class Http2Client {
 public:
  // Connects and sends `first`, the preface and empty SETTINGS.
  explicit Http2Client(const std::string& address, const std::string& first = "");

  // Waits for the first byte of the server.
  bool AwaitServer();
  // The headers of a gRPC call, without the end of the stream.
  void Headers(std::uint32_t stream, const std::string& path);
  void Reset(std::uint32_t stream);
  void Frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, const std::string& payload);
  // Sends what was collected and throws away what the server has sent meanwhile; false when the connection is
  // closed.
  bool Flush();

 private:
  // Returns false when the server has closed the connection.
  bool DropReceived();

  UniqueFd fd_;
  std::string unsent_;
};

}  // namespace warpline

#endif  // WARPLINE_TESTS_E2E_HTTP2_H_
