#include "server/rpc/codec/convert.h"

#include <utility>

#include "kernels/status_macros.h"
#include "proto/rules/convert_step.h"
#include "proto/rules/reduce_steps.h"
#include "proto/rules/step_options.h"
#include "proto/rules/views.h"
#include "server/rpc/codec/convert_options.h"
#include "server/rpc/codec/program_builder.h"

namespace warpline {
namespace {

// Ends a request of one operation. `blame` is the field that decides how large the result is.
absl::StatusOr<Conversion> OneStep(ProgramBuilder builder, absl::StatusOr<ConvertedStep> converted,
                                   const std::string& variant, const char* blame, const Limits& limits) {
  RETURN_IF_ERROR(converted.status());
  RETURN_IF_ERROR(CheckVariantName(variant));
  const Shape shape = converted->output.shape;
  const int result = builder.AddStep(*std::move(converted), variant);
  RETURN_IF_ERROR(builder.AddOutput(blame, "", result, shape, limits));
  RETURN_IF_ERROR(builder.CheckSinksUsed());
  return std::move(builder).Build();
}

}  // namespace

absl::StatusOr<Conversion> FromProto(const v1::TransposeRequest& request, const TokenValues& values,
                                     const Limits& limits) {
  TensorReader reader(values, limits);
  ProgramBuilder builder;
  RETURN_IF_ERROR(builder.TakeOptions(request.options(), values));
  ASSIGN_OR_RETURN(const CheckedTensor tensor, reader.Read("x", request.has_x() ? &request.x() : nullptr));
  const Operand x = builder.AddInput("x", tensor);
  return OneStep(std::move(builder), ConvertTranspose(x, TransposeOptionsOf(request)), request.variant(),
                 "x.shape", limits);
}

absl::StatusOr<Conversion> FromProto(const v1::ReduceRequest& request, const TokenValues& values,
                                     const Limits& limits) {
  TensorReader reader(values, limits);
  ProgramBuilder builder;
  RETURN_IF_ERROR(builder.TakeOptions(request.options(), values));
  ASSIGN_OR_RETURN(const CheckedTensor tensor, reader.Read("x", request.has_x() ? &request.x() : nullptr));
  const Operand x = builder.AddInput("x", tensor);
  RETURN_IF_ERROR(CheckVariantName(request.variant()));
  const auto emit = [&](ConvertedStep step, const std::string& variant, int into) -> absl::StatusOr<Operand> {
    const TensorSpec spec = step.output;
    step.step.output = into;
    return DenseOperand("x", builder.AddStep(std::move(step), variant), spec);
  };
  ASSIGN_OR_RETURN(const Operand result, ReduceSteps(x, ReduceOptionsOf(request), request.variant(), emit));
  RETURN_IF_ERROR(builder.AddOutput("x.shape", "", result.tensor, result.shape, limits));
  RETURN_IF_ERROR(builder.CheckSinksUsed());
  return std::move(builder).Build();
}

absl::StatusOr<Conversion> FromProto(const v1::GemmRequest& request, const TokenValues& values,
                                     const Limits& limits) {
  TensorReader reader(values, limits);
  ProgramBuilder builder;
  RETURN_IF_ERROR(builder.TakeOptions(request.options(), values));
  ASSIGN_OR_RETURN(const GemmOptions options, GemmOptionsOf(request, TokenReader{values.scalars}));
  ASSIGN_OR_RETURN(CheckedTensor tensor, reader.Read("a", request.has_a() ? &request.a() : nullptr));
  const Operand a = builder.AddInput("a", tensor);
  ASSIGN_OR_RETURN(tensor, reader.Read("b", request.has_b() ? &request.b() : nullptr));
  const Operand b = builder.AddInput("b", tensor);
  const bool reads_c = ReadsC(a.dtype, options.beta.value);
  RETURN_IF_ERROR(CheckHasC(reads_c, request.has_c(), options.beta.value));
  Operand c, bias;
  if (request.has_c()) {
    ASSIGN_OR_RETURN(tensor, reader.Read("c", &request.c()));
    c = reads_c ? builder.AddInput("c", tensor)
                : RowsOperand("c", -1, tensor.spec.dtype, tensor.spec.shape, tensor.row_stride);
  }
  if (request.has_bias()) {
    ASSIGN_OR_RETURN(tensor, reader.Read("bias", &request.bias()));
    bias = builder.AddInput("bias", tensor);
  }
  return OneStep(
      std::move(builder),
      ConvertGemm(a, b, request.has_c() ? &c : nullptr, request.has_bias() ? &bias : nullptr, options),
      request.variant(), "a.shape", limits);
}

}  // namespace warpline
