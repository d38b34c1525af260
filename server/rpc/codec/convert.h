// Converts between the messages of the API and the engine's Program. Pure functions: no I/O, no state, no
// gRPC.
#ifndef WARPLINE_SERVER_RPC_CODEC_CONVERT_H_
#define WARPLINE_SERVER_RPC_CODEC_CONVERT_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/program.h"
#include "proto/wire/scanner.h"
#include "server/observe/request_kind.h"
#include "server/plan/plan.h"
#include "server/rpc/codec/convert_tensor.h"
#include "server/rpc/codec/request_options.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// The result of converting a valid request. The shape of each output in `program` is the one in the response:
// keepdims is applied.
struct Conversion {
  RequestKind kind = RequestKind::kRun;
  Program program;
  std::vector<CheckedTensor::Source> sources;  // of the program's inputs, in order
  std::vector<PlannedScalars> scalars;         // ScalarCount values for each step, in order
  // One entry per step, in the order of the request's program (Step::part_of). Empty if errors must not name
  // steps.
  std::vector<std::string> step_names;
  std::vector<std::string> output_names;  // of the program's outputs, in order
  // Every variant that a step names must be reproducible.
  bool reproducible = false;
  bool reports = false;            // the response names the variant that ran for each step
  std::vector<OutputPlace> sinks;  // of the program's outputs, in order
  std::vector<int> count_tensors;  // Operand::count_tensor of the program's outputs, in order
};

// `request` is the parsed header of a scanned message. Errors name the field
// (kernels/field_error.h), its value and the limit; the first rule that is broken is the one reported.
absl::StatusOr<Conversion> FromProto(const v1::RunRequest& request, const TokenValues& values,
                                     const Limits& limits);
// Returns the kind of a program: that of its only step if there is such a kind.
RequestKind KindOf(const v1::Program& program);
// A request of one operation is converted as the program of one step that AsRun makes of it. Errors name the
// request's own fields.
absl::StatusOr<Conversion> FromProto(const v1::TransposeRequest& request, const TokenValues& values,
                                     const Limits& limits);
absl::StatusOr<Conversion> FromProto(const v1::GemmRequest& request, const TokenValues& values,
                                     const Limits& limits);
absl::StatusOr<Conversion> FromProto(const v1::ReduceRequest& request, const TokenValues& values,
                                     const Limits& limits);

// The parts of a response other than elements.
struct ResponseParts {
  std::span<const PlannedOutput> outputs;
  // The outputs that are not inline, in their order. Each has only its source, which says where the output
  // is.
  std::span<const v1::Tensor> placed;
  const v1::Execution& execution;
};

// Returns a response up to the elements of its only result. The whole message is this text, followed by the
// bytes of the output unless the output is not inline. One function serves all operations, because all have
// the tensor and the execution at the same field numbers.
std::string ResponseHeader(const ResponseParts& parts);

// The same for a RunResponse, in as many parts as it has outputs, but at least one. Part i comes before the
// elements of output i.
std::vector<std::string> RunResponseHeaders(const ResponseParts& parts);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_CONVERT_H_
