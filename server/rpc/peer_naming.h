// Gives each connection a name that leads back to it from gRPC's calls.
#ifndef WARPLINE_SERVER_RPC_PEER_NAMING_H_
#define WARPLINE_SERVER_RPC_PEER_NAMING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace warpline {

// gRPC 1.51 asks getpeername(2) once, when it takes a connection over, and gives every call of the connection
// that name. All clients of a unix socket would have the same one, and those behind a proxy the proxy's.
// While a NamingScope lives, getpeername on its thread answers with the connection's number instead.
class NamingScope {
 public:
  explicit NamingScope(std::uint64_t number);
  ~NamingScope();
  NamingScope(const NamingScope&) = delete;
  NamingScope& operator=(const NamingScope&) = delete;
};

// The number in what grpc::ServerContext::peer() says; nothing if it has none, as for a call whose connection
// was lost before its headers were passed on.
std::optional<std::uint64_t> NumberInPeerName(std::string_view peer);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_PEER_NAMING_H_
