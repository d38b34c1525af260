// Writes the log lines of gRPC and protobuf to our log.
#ifndef WARPLINE_SERVER_RPC_LIBRARY_LOG_H_
#define WARPLINE_SERVER_RPC_LIBRARY_LOG_H_

namespace warpline {

// After this, errors of gRPC and all messages of protobuf go to our log, at most ten a second of each.
// Clients can cause any number of them: of gRPC with each connection, for example by a failing TLS handshake,
// and of protobuf with each message, for example by a text that is not UTF-8. GRPC_VERBOSITY still sets the
// minimum level. Call it before other threads use protobuf. It may be called again.
void TakeOverLibraryLogs();

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_LIBRARY_LOG_H_
