// The options that all requests share. Pure.
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

// The place where a result is to go: inline by default.
struct OutputPlace {
  int sink = PlannedOutput::kInline;  // number in options.sinks
  std::optional<PlannedSlice> slice;  // nothing for a result that is to stay on its device
  PlannedScalar ttl;                  // of such a one
  bool streamed = false;              // the client fetches it from there
};

struct RequestedSink {
  std::string field;   // its name in errors
  std::string output;  // as Sink.output
  OutputPlace place;
  bool used = false;  // there is such an output
};

// The sinks of a request. INVALID_ARGUMENT, with the name of the field ("options.sinks[1].output"), if two
// are for one output.
absl::StatusOr<std::vector<RequestedSink>> ReadSinks(const v1::RequestOptions& options,
                                                     const TokenValues& values);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_REQUEST_OPTIONS_H_
