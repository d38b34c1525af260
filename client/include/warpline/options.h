// The options of a client, of its connection and of each call.
#ifndef WARPLINE_OPTIONS_H_
#define WARPLINE_OPTIONS_H_

#include <stop_token>
#include <string>

#include "warpline/array.h"

namespace warpline::client {

// The PEM files for TLS with the server, by path. They are read when the client is made. Unix sockets need no
// TLS; for such targets these options are ignored.
struct TlsOptions {
  std::string ca{};    // the CAs that may have signed the server's certificate; empty: no TLS
  std::string cert{};  // the client's certificate, if the server wants one, and those up to the root
  std::string key{};   // its private key, without a pass phrase
};

struct ChannelOptions {
  // True for a connection of its own, even if the process has another channel to the same target.
  bool own_connection = false;
  // If a file is unusable, every call fails with InvalidArgument, which names the file.
  TlsOptions tls{};
  // The token that identifies this client to a server that asks for tokens. It is sent with every call.
  // Without TLS, everybody on the network path can read it. Must be printable ASCII without spaces, else
  // every call fails. Empty: no token.
  std::string token{};
};

struct ClientOptions {
  ChannelOptions channel{};
  // The number of times that a blocking call, or one range of a transfer, is sent again. It is sent again
  // after:
  //   - UNAVAILABLE
  //   - RESOURCE_EXHAUSTED or ABORTED with a delay from the server, which is obeyed
  //   - a stream that the server's gRPC reset as it lowered its windows (docs/clients.md)
  // There is never a retry beyond the deadline. gRPC itself sends again only what no server saw.
  int max_retries = 0;
  // The path of the server's region socket, as in its --regions option, or "unix:/path". If empty, the socket
  // of a server at "unix:/path" is "/path.regions", and other servers have none. See Client::OpenRegion.
  std::string region_socket{};
};

struct CallOptions {
  // Sent as x-request-id. If empty, the server makes one.
  std::string request_id{};
  // The destination of the result. Run does not use it: RunArgs has one destination for each output. The
  // memory must stay valid until the call is over.
  Destination destination{};
  // Ends a call of CallAsync or RunAsync early, with CANCELLED.
  std::stop_token stop{};
};

}  // namespace warpline::client

#endif  // WARPLINE_OPTIONS_H_
