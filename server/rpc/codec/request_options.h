// The options that all requests share. Pure.
#ifndef WARPLINE_SERVER_RPC_CODEC_REQUEST_OPTIONS_H_
#define WARPLINE_SERVER_RPC_CODEC_REQUEST_OPTIONS_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/plan/plan.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// A result that is to stay on its device.
struct ResidentOutput {
  int sink = 0;  // number in options.sinks
  PlannedScalar ttl;
};

struct RequestedSink {
  std::string field;                       // its name in errors
  std::string output;                      // as Sink.output
  std::optional<ResidentOutput> resident;  // nothing for a result that is returned inline
  bool used = false;                       // there is such an output
};

// The sinks of a request. `scalars` are those that the scan found. INVALID_ARGUMENT if two are for one
// output, UNIMPLEMENTED for a place that is not built yet; both name the field ("options.sinks[1].region").
absl::StatusOr<std::vector<RequestedSink>> ReadSinks(const v1::RequestOptions& options,
                                                     std::span<const double> scalars);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_REQUEST_OPTIONS_H_
