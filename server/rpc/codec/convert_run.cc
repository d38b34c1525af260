// From a RunRequest to a Program: names become numbers.
#include <optional>
#include <string>
#include <utility>

#include "kernels/status_macros.h"
#include "proto/rules/program_rules.h"
#include "server/rpc/codec/convert.h"
#include "server/rpc/codec/convert_options.h"
#include "server/rpc/codec/program_builder.h"

namespace warpline {

absl::StatusOr<Conversion> FromProto(const v1::RunRequest& request, const TokenValues& values,
                                     const Limits& limits) {
  TensorReader reader(values, limits);
  ProgramBuilder builder;
  ProgramRules rules(request.program());
  RETURN_IF_ERROR(builder.TakeOptions(request.options(), values));
  RETURN_IF_ERROR(CheckInputCount(static_cast<std::size_t>(request.inputs_size())));
  for (const v1::NamedTensor& input : request.inputs()) {
    const auto read = [&](const std::string& field) -> absl::StatusOr<std::optional<Operand>> {
      ASSIGN_OR_RETURN(const CheckedTensor tensor,
                       reader.Read(field, input.has_tensor() ? &input.tensor() : nullptr));
      return builder.AddInput(input.name(), tensor);
    };
    RETURN_IF_ERROR(rules.AddInput(input.name(), read));
  }
  const auto add_step = [&](ConvertedStep step, const std::string& variant) {
    builder.AddStep(std::move(step), variant);
  };
  RETURN_IF_ERROR(rules.CheckSteps(TokenReader{values.scalars}, add_step));
  RETURN_IF_ERROR(rules.CheckOutputs(
      add_step, [&](const std::string& field, const std::string& name, const std::optional<Operand>& result) {
        return builder.AddOutput(field, name, result->tensor, result->shape, limits, result->count_tensor);
      }));
  RETURN_IF_ERROR(builder.CheckSinksUsed());
  RETURN_IF_ERROR(rules.CheckAllUsed());
  Conversion conversion = std::move(builder).Build();
  conversion.step_names = rules.StepNames();
  conversion.program.num_parts = request.program().steps_size();
  return conversion;
}

}  // namespace warpline
