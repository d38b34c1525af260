// Puts a Program together while its request is being checked.
#ifndef WARPLINE_SERVER_RPC_CODEC_PROGRAM_BUILDER_H_
#define WARPLINE_SERVER_RPC_CODEC_PROGRAM_BUILDER_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "server/rpc/codec/convert.h"
#include "server/rpc/codec/convert_step.h"

namespace warpline {

// "auto" and "" are the same; longer names than any in the tables are refused, as they are repeated in
// errors, logs and cache keys.
absl::Status CheckVariantName(const std::string& variant);

// Inputs are added before steps, and steps before outputs. The builder is a value that can be moved and
// copied.
class ProgramBuilder {
 public:
  // UNIMPLEMENTED if the request asks for what is not built yet (request_options.h).
  absl::Status TakeOptions(const v1::RequestOptions& options);
  // `field` is the name of the tensor in errors.
  Operand AddInput(std::string field, const CheckedTensor& tensor);
  // The name of the variant must have been checked. Returns the result as an operand, which has no field yet.
  Operand AddStep(ConvertedStep converted, const std::string& variant);
  // Returns the result of a step. `field` is what to blame if it is too large, alone or with those before it.
  absl::Status AddOutput(std::string_view field, int tensor, const Limits& limits);

  const Program& program() const { return conversion_.program; }
  Conversion Build() && { return std::move(conversion_); }

 private:
  Conversion conversion_;
  std::size_t output_bytes_ = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_PROGRAM_BUILDER_H_
