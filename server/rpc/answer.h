// Answers unary calls whose requests are small enough to be parsed as a whole.
#ifndef WARPLINE_SERVER_RPC_ANSWER_H_
#define WARPLINE_SERVER_RPC_ANSWER_H_

#include "absl/status/statusor.h"
#include "proto/rules/known_fields.h"
#include "server/rpc/slices.h"
#include "server/rpc/unary_call.h"

namespace warpline {

// Parses the request of a call. If it is invalid, or uses a newer API, ends the call with an error and
// returns false.
template <typename Request>
bool ParseCall(UnaryCall& call, Request& request) {
  if (!request.ParseFromString(ToString(call.TakeRequest().slices()))) {
    call.RespondError(absl::InvalidArgumentError("the request is not a valid protobuf message of its type"));
    return false;
  }
  if (const absl::Status known = CheckAllKnown(request); !known.ok()) {
    call.RespondError(known);
    return false;
  }
  call.ReturnProvisionalTicket();
  return true;
}

// Ends the call.
template <typename Response>
void RespondWith(UnaryCall& call, const absl::StatusOr<Response>& response) {
  if (!response.ok()) return call.RespondError(response.status());
  call.Respond(ToByteBuffer(response->SerializeAsString()));
}

// Ends the call with the response, or the error, that `answer` returns for its request.
template <typename Request, typename Response, typename Answer>
void AnswerCall(UnaryCall& call, const Answer& answer) {
  Request request;
  if (!ParseCall(call, request)) return;
  RespondWith<Response>(call, answer(request));
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_ANSWER_H_
