// Log lines of gRPC and protobuf, in ours.
#ifndef WARPLINE_SERVER_RPC_LIBRARY_LOG_H_
#define WARPLINE_SERVER_RPC_LIBRARY_LOG_H_

namespace warpline {

// From now on errors of gRPC, and whatever protobuf has to say, go to the log as everything else does, each
// ten a second at most: whoever reaches the port can cause one of gRPC's with each connection, as by a TLS
// handshake that fails, and one of protobuf's with each message, as by a text that is no UTF-8.
// GRPC_VERBOSITY still says from which level on. Before other threads use protobuf. May be called again.
void TakeOverLibraryLogs();

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_LIBRARY_LOG_H_
