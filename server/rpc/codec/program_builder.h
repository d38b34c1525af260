// Builds a Program while its request is being checked.
#ifndef WARPLINE_SERVER_RPC_CODEC_PROGRAM_BUILDER_H_
#define WARPLINE_SERVER_RPC_CODEC_PROGRAM_BUILDER_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/rules/convert_step.h"
#include "server/rpc/codec/convert.h"

namespace warpline {

// Add inputs before steps, and steps before outputs. The builder is a value that can be moved and copied.
class ProgramBuilder {
 public:
  // Must be called first. Errors are those of ReadSinks.
  absl::Status TakeOptions(const v1::RequestOptions& options, const TokenValues& values);
  // `field` is the name of the tensor in errors.
  Operand AddInput(std::string field, const CheckedTensor& tensor);
  // Adds a step. The variant name must already have been checked. `converted` has the tensor number of its
  // output, or -1 for the next tensor. Returns the number.
  int AddStep(ConvertedStep converted, const std::string& variant);
  // Makes the result of a step, with a shape of the same number of elements, an output that goes to the sink
  // with this `name`. Errors name `field` if inline outputs are too large, alone or together with those
  // before. `count_tensor`: see Operand::count_tensor. The size of such a result is checked once it is known.
  absl::Status AddOutput(std::string_view field, std::string_view name, int tensor, const Shape& shape,
                         const Limits& limits, int count_tensor = -1);
  // Returns an error if a sink does not name an output.
  absl::Status CheckSinksUsed() const;

  Conversion Build() && { return std::move(conversion_); }

 private:
  Conversion conversion_;
  std::vector<RequestedSink> sinks_;
  std::size_t output_bytes_ = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_PROGRAM_BUILDER_H_
