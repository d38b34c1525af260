// Functions that tell who a call comes from, by what gRPC knows of the call.
#ifndef WARPLINE_SERVER_RPC_IDENTIFY_H_
#define WARPLINE_SERVER_RPC_IDENTIFY_H_

#include <grpcpp/server_context.h>

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/base/owner.h"
#include "server/identity/identities.h"

namespace warpline {

// The owner of a call by its `authorization` header and its connection's certificate; errors are those of
// Identities::Identify. Null for null, where nobody is asked. The identities outlive it.
std::function<absl::StatusOr<OwnerId>(const grpc::ServerContext&)> IdentifyBy(const Identities* identities);

// Returns a function that tells whether an authorization header, of whatever protocol, has a known token.
std::function<bool(const std::string& authorization)> KnowsToken(const Identities& identities);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_IDENTIFY_H_
