// What a client, its connection and each of its calls can be told.
#ifndef WARPLINE_OPTIONS_H_
#define WARPLINE_OPTIONS_H_

#include <string>

#include "warpline/array.h"

namespace warpline::client {

// TLS with the server, by the paths of PEM files, which are read when the client is made. Targets that are
// unix sockets need none, and there these are ignored.
struct TlsOptions {
  std::string ca{};    // the CAs that may have signed the server's certificate; empty: no TLS
  std::string cert{};  // the client's certificate, if the server wants one, and those up to the root
  std::string key{};   // its private key, without a pass phrase
};

struct ChannelOptions {
  // A connection of its own, even if the process has another channel to the same target.
  bool own_connection = false;
  // If these files are no good, every call fails with InvalidArgument, which names the file.
  TlsOptions tls{};
  // Who this client is, to a server that asks for tokens; goes with every call. Without TLS everybody in
  // between can read it. Printable ASCII without spaces, else every call fails. Empty: none.
  std::string token{};
};

struct ClientOptions {
  ChannelOptions channel{};
  // How often a blocking call, or one range of a transfer, is sent again after UNAVAILABLE, or after
  // RESOURCE_EXHAUSTED or ABORTED with a delay from the server, which is obeyed, or after a stream that the
  // server's gRPC reset as it lowered its windows (docs/clients.md). Never beyond the deadline.
  // gRPC itself only sends again what no server saw.
  int max_retries = 0;
  // Path of the server's region socket, as its --regions has it, or "unix:/path". Empty: of a server at
  // "unix:/path" that is
  // "/path.regions", and others have none. See Client::OpenRegion.
  std::string region_socket{};
};

struct CallOptions {
  // Sent as x-request-id; empty: the server makes one.
  std::string request_id{};
  // Of the resulting elements, but for Run, whose arguments have one an output. Must stay until the call is
  // over.
  Destination destination{};
};

}  // namespace warpline::client

#endif  // WARPLINE_OPTIONS_H_
