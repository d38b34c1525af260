// Functions that find out who makes a call, from what gRPC knows about the call.
#ifndef WARPLINE_SERVER_RPC_IDENTIFY_H_
#define WARPLINE_SERVER_RPC_IDENTIFY_H_

#include <grpcpp/server_context.h>

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/base/owner.h"
#include "server/identity/identities.h"

namespace warpline {

// Returns a function that finds the owner of a call by its `authorization` header and its connection's
// certificate; its errors are those of Identities::Identify. Null if `identities` is null: then callers are
// not identified. The identities outlive it.
std::function<absl::StatusOr<OwnerId>(const grpc::ServerContext&)> IdentifyBy(const Identities* identities);

// Returns a function that tells whether the value of an authorization header, of any protocol, has a known
// token.
std::function<bool(const std::string& authorization)> KnowsToken(const Identities& identities);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_IDENTIFY_H_
