// The answer to a call of an unknown method.
#ifndef WARPLINE_SERVER_RPC_REFUSAL_H_
#define WARPLINE_SERVER_RPC_REFUSAL_H_

#include <grpcpp/support/status.h>

#include <memory>
#include <string>

#include "server/rpc/incoming_call.h"

namespace warpline {

// Ends the call with the status, without reading it. The access log contains `request_id`, if the client is
// told one.
void Refuse(std::unique_ptr<IncomingCall> incoming, const grpc::Status& status,
            const std::string& request_id = "");

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_REFUSAL_H_
