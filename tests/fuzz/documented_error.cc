#include "tests/fuzz/documented_error.h"

#include "absl/strings/str_cat.h"
#include "google/rpc/status.pb.h"
#include "server/rpc/rpc_status.h"

namespace warpline::testing {

bool IsDocumented(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
      return true;
    default:
      return false;
  }
}

std::string FlawOfError(const absl::Status& status) {
  if (!IsDocumented(status.code()) || status.message().empty()) {
    return absl::StrCat("an error that is not documented: ", status.ToString());
  }
  const grpc::Status sent = ToGrpcStatus(status, "0123456789abcdef");
  google::rpc::Status details;
  if (!details.ParseFromString(sent.error_details()) || details.code() != sent.error_code()) {
    return absl::StrCat("details that nobody can read: ", status.ToString());
  }
  // gRPC limits trailers in this way; rpc_status.h uses these factors.
  if (3 * sent.error_message().size() + sent.error_details().size() * 4 / 3 > 8000) return "details too long";
  return "";
}

}  // namespace warpline::testing
