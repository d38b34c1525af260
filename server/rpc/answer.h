// Answers to unary calls whose requests are small enough to be parsed as a whole.
#ifndef WARPLINE_SERVER_RPC_ANSWER_H_
#define WARPLINE_SERVER_RPC_ANSWER_H_

#include "absl/status/statusor.h"
#include "server/rpc/slices.h"
#include "server/rpc/unary_call.h"

namespace warpline {

// Ends the call with what `answer` makes of its request: a response, or an error.
template <typename Request, typename Response, typename Answer>
void AnswerCall(UnaryCall& call, const Answer& answer) {
  Request request;
  if (!request.ParseFromString(ToString(call.TakeRequest().slices()))) {
    return call.RespondError(
        absl::InvalidArgumentError("the request is not a valid protobuf message of its type"));
  }
  call.ReturnProvisionalTicket();
  const absl::StatusOr<Response> response = answer(request);
  if (!response.ok()) return call.RespondError(response.status());
  call.Respond(ToByteBuffer(response->SerializeAsString()));
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_ANSWER_H_
