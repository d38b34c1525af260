// The name of a request in errors and logs.
#ifndef WARPLINE_SERVER_RPC_REQUEST_ID_H_
#define WARPLINE_SERVER_RPC_REQUEST_ID_H_

#include <grpcpp/grpcpp.h>

#include <string>

namespace warpline {

// Returns the client's "x-request-id", if it is printable ASCII of at most 128 characters. Otherwise returns
// a new id, which is unique in this process and very likely among all processes.
std::string RequestId(const grpc::ServerContext& context);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_REQUEST_ID_H_
