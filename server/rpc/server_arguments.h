// The settings of gRPC's server.
#ifndef WARPLINE_SERVER_RPC_SERVER_ARGUMENTS_H_
#define WARPLINE_SERVER_RPC_SERVER_ARGUMENTS_H_

#include <grpcpp/server_builder.h>

#include "server/rpc/rpc_server.h"

namespace warpline {

// Sets the limits and timeouts of messages and connections.
void SetArguments(const RpcServer::Options& options, grpc::ServerBuilder& builder);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_SERVER_ARGUMENTS_H_
