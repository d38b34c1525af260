// Chooses the threads that read the sockets of clients.
#ifndef WARPLINE_SERVER_RPC_POLLING_CHOICE_H_
#define WARPLINE_SERVER_RPC_POLLING_CHOICE_H_

namespace warpline {

// After this, the threads that take our calls read the sockets too. Newer versions of gRPC have threads of
// their own for that otherwise, and each request goes from one to the other. Call it before anything else of
// gRPC. A value of GRPC_EXPERIMENTS in the environment stays as it is.
void LetOurThreadsRead();

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_POLLING_CHOICE_H_
