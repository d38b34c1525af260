// Puts a Program together while its request is being checked.
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

// Inputs are added before steps, and steps before outputs. The builder is a value that can be moved and
// copied.
class ProgramBuilder {
 public:
  // Before anything else. Errors are those of ReadSinks.
  absl::Status TakeOptions(const v1::RequestOptions& options, const TokenValues& values);
  // `field` is the name of the tensor in errors.
  Operand AddInput(std::string field, const CheckedTensor& tensor);
  // The name of the variant must have been checked. The step has the number of its output, or -1: the next
  // tensor. Returns the number.
  int AddStep(ConvertedStep converted, const std::string& variant);
  // Returns the result of a step, with a shape of as many elements, to the sink of the same `name`. `field`
  // is what to blame if it is too large to be returned inline, alone or with those before it.
  // `count_tensor`: Operand::count_tensor. How large such a result is, is checked when it is known.
  absl::Status AddOutput(std::string_view field, std::string_view name, int tensor, const Shape& shape,
                         const Limits& limits, int count_tensor = -1);
  // An error if a sink names no output.
  absl::Status CheckSinksUsed() const;

  Conversion Build() && { return std::move(conversion_); }

 private:
  Conversion conversion_;
  std::vector<RequestedSink> sinks_;
  std::size_t output_bytes_ = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_PROGRAM_BUILDER_H_
