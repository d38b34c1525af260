// gRPC's own log lines, in ours.
#ifndef WARPLINE_SERVER_RPC_GRPC_LOG_H_
#define WARPLINE_SERVER_RPC_GRPC_LOG_H_

namespace warpline {

// From now on gRPC's errors go to the log as everything else does, ten a second at most: whoever reaches the
// port can cause one with each connection, as by a TLS handshake that fails. GRPC_VERBOSITY still says from
// which level on. May be called again.
void TakeOverGrpcLog();

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_GRPC_LOG_H_
