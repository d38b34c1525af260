// The names of gRPC's status codes, as clients and dashboards know them.
#ifndef WARPLINE_SERVER_RPC_CODE_NAME_H_
#define WARPLINE_SERVER_RPC_CODE_NAME_H_

#include <grpcpp/support/status_code_enum.h>

#include <array>
#include <string_view>

namespace warpline {

constexpr std::string_view CodeName(grpc::StatusCode code) {
  constexpr std::array<std::string_view, 17> kNames = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto index = static_cast<std::size_t>(code);
  return index < kNames.size() ? kNames[index] : "UNKNOWN";
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODE_NAME_H_
