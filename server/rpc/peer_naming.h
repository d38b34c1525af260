// Gives each connection a name by which gRPC's calls can be traced back to it.
#ifndef WARPLINE_SERVER_RPC_PEER_NAMING_H_
#define WARPLINE_SERVER_RPC_PEER_NAMING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace warpline {

// gRPC 1.51 calls getpeername(2) once, when it takes over a connection, and gives that name to all calls of
// the connection. All clients of a unix socket would have the same name, and all clients behind a proxy the
// proxy's. While a NamingScope exists, getpeername on its thread returns a name with the connection's number
// instead.
class NamingScope {
 public:
  explicit NamingScope(std::uint64_t number);
  ~NamingScope();
  NamingScope(const NamingScope&) = delete;
  NamingScope& operator=(const NamingScope&) = delete;
};

// Returns the number in the result of grpc::ServerContext::peer(); nothing if there is none, for example for
// a call whose connection was lost before its headers were passed on.
std::optional<std::uint64_t> NumberInPeerName(std::string_view peer);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_PEER_NAMING_H_
