// gRPC's credentials of C as those of C++.
#ifndef WARPLINE_SERVER_RPC_WRAP_CREDENTIALS_H_
#define WARPLINE_SERVER_RPC_WRAP_CREDENTIALS_H_

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

namespace warpline {

// Takes over the reference. `kept` lives as long as the result.
std::shared_ptr<grpc::ServerCredentials> WrapCredentials(grpc_server_credentials* credentials,
                                                         std::shared_ptr<void> kept);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_WRAP_CREDENTIALS_H_
