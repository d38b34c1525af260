// The options that all requests have. Pure.
#ifndef WARPLINE_SERVER_RPC_CODEC_REQUEST_OPTIONS_H_
#define WARPLINE_SERVER_RPC_CODEC_REQUEST_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/plan/plan.h"
#include "server/rpc/codec/convert_tensor.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// The destination of a result: inline by default.
struct OutputPlace {
  int sink = PlannedOutput::kInline;  // number in options.sinks
  std::optional<PlannedSlice> slice;  // not set for a result that stays on its device
  PlannedScalar ttl;                  // lease of a result that stays on its device
  bool streamed = false;              // the client fetches it from the device
};

struct RequestedSink {
  std::string field;   // its field name in errors
  std::string output;  // Sink.output
  OutputPlace place;
  bool used = false;  // the request has this output
};

// Returns the sinks of a request. INVALID_ARGUMENT, with the name of the field ("options.sinks[1].output"),
// if two sinks are for the same output.
absl::StatusOr<std::vector<RequestedSink>> ReadSinks(const v1::RequestOptions& options,
                                                     const TokenValues& values);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_REQUEST_OPTIONS_H_
