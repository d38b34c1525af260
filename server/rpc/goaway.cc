#include "server/rpc/goaway.h"

#include <grpc/grpc.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

// gRPC's public functions send a GOAWAY only when they shut the server down, and from then on each call that
// comes is CANCELLED for its client, as if that had done so itself. What we want is a public member of a
// class of which no header is installed. A gRPC without it could not be linked; the one of the distributions
// that we build on has it.
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
  // Such functions run only while the thread has an "execution context" of gRPC's, which every public
  // function makes for itself. The one that destroys a buffer calls us back in between, to free the buffer's
  // slice.
  static char byte = 0;
  const auto make_buffer = [&] {
    const grpc::Slice slice(&byte, sizeof(byte), SendFrom, server.c_server());
    return grpc::ByteBuffer(&slice, 1);
  };
  make_buffer();
}

// gRPC documents this function for use after the shutdown. In gRPC 1.51 it does the same before.
void CloseConnections(grpc::Server& server) { grpc_server_cancel_all_calls(server.c_server()); }

}  // namespace warpline
