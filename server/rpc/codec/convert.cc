#include "server/rpc/codec/convert.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/status_macros.h"
#include "proto/rules/one_step.h"
#include "proto/rules/program_rules.h"
#include "server/rpc/codec/convert_options.h"
#include "server/rpc/codec/program_builder.h"

namespace warpline {
namespace {

// A product may have a C that it does not read (beta is 0). Such an input is not copied to the device. If it
// is an upload, it keeps its memory.
void LeaveOutUnread(Conversion& conversion) {
  Program& program = conversion.program;
  std::vector<bool> read(static_cast<std::size_t>(program.num_inputs));
  for (const Step& step : program.steps) {
    for (const int input : step.inputs) {
      if (input < program.num_inputs) read[static_cast<std::size_t>(input)] = true;
    }
  }
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (read[i] || conversion.sources[i].upload.has_value()) continue;
    program.tensors[i] = {program.tensors[i].dtype, {0}, 0};
    conversion.sources[i] = {};
  }
}

template <typename OperationRequest>
absl::StatusOr<Conversion> FromOperation(const OperationRequest& request, const TokenValues& values,
                                         const Limits& limits) {
  const v1::RunRequest run = AsRun(request);
  const v1::Step& step = run.program().steps(0);
  absl::StatusOr<Conversion> conversion = FromProto(run, values, limits);
  if (!conversion.ok()) return InOperation(conversion.status(), step);
  conversion->step_names.clear();
  for (CheckedTensor::Source& source : conversion->sources) {
    if (source.slice.has_value()) source.slice->field = InOperation(source.slice->field, step);
  }
  return conversion;
}

}  // namespace

RequestKind KindOf(const v1::Program& program) {
  if (program.steps_size() != 1) return RequestKind::kRun;
  switch (program.steps(0).operation_case()) {
    case v1::Step::kTranspose:
      return RequestKind::kTranspose;
    case v1::Step::kGemm:
      return RequestKind::kGemm;
    case v1::Step::kReduce:
      return RequestKind::kReduce;
    default:
      return RequestKind::kRun;
  }
}

absl::StatusOr<Conversion> FromProto(const v1::TransposeRequest& request, const TokenValues& values,
                                     const Limits& limits) {
  return FromOperation(request, values, limits);
}
absl::StatusOr<Conversion> FromProto(const v1::GemmRequest& request, const TokenValues& values,
                                     const Limits& limits) {
  return FromOperation(request, values, limits);
}
absl::StatusOr<Conversion> FromProto(const v1::ReduceRequest& request, const TokenValues& values,
                                     const Limits& limits) {
  return FromOperation(request, values, limits);
}

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
  LeaveOutUnread(conversion);
  conversion.kind = KindOf(request.program());
  conversion.step_names = rules.StepNames();
  conversion.program.num_parts = request.program().steps_size();
  return conversion;
}

}  // namespace warpline
