#include "server/rpc/goaway.h"

#include <grpc/grpc.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

// gRPC's public functions send a GOAWAY only when they shut the server down. After that, each new call is
// CANCELLED for its client, as if the client had cancelled it. The function that we need is a public member
// of a class whose header is not installed. Linking fails if gRPC does not have it; the gRPC of the supported
// distributions does.
namespace grpc_core {
class Server {
 public:
  void SendGoaways();
};
}  // namespace grpc_core

namespace warpline {
namespace {

// gRPC's own Server::FromC converts in the same way.
void SendFrom(void* server) { static_cast<grpc_core::Server*>(server)->SendGoaways(); }

}  // namespace

void SendGoaways(grpc::Server& server) {
  // Such functions may run only while the thread has one of gRPC's "execution contexts", which each public
  // function creates for itself. The function that destroys a buffer calls us back within its context, to
  // free the buffer's slice.
  static char byte = 0;
  const auto make_buffer = [&] {
    const grpc::Slice slice(&byte, sizeof(byte), SendFrom, server.c_server());
    return grpc::ByteBuffer(&slice, 1);
  };
  make_buffer();
}

// gRPC documents this function for use after the shutdown. In gRPC 1.51 it also works before it.
void CloseConnections(grpc::Server& server) { grpc_server_cancel_all_calls(server.c_server()); }

}  // namespace warpline
