#include "client/src/result_type.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "client/src/one_step.h"
#include "kernels/status_macros.h"
#include "proto/rules/convert_step.h"
#include "proto/rules/program_rules.h"
#include "proto/rules/step_options.h"
#include "proto/rules/tensor_rules.h"
#include "proto/rules/views.h"

namespace warpline::client {
namespace {

// An operand in the form that the rules use; nothing if its type is unknown.
using MaybeOperand = std::optional<warpline::Operand>;

// `field` is the operand's name in the request.
absl::StatusOr<MaybeOperand> Read(const std::string& field, const Operand& operand) {
  const bool is_resident = !operand.resident.empty();
  if (is_resident && operand.shape.rank == 0) return std::nullopt;
  const absl::Span<const std::int64_t> sizes(operand.shape.dims.data(),
                                             static_cast<std::size_t>(operand.shape.rank));
  ASSIGN_OR_RETURN(const Layout layout,
                   CheckLayout(field, operand.dtype, sizes, is_resident ? 0 : operand.row_stride));
  return RowsOperand(field, -1, layout.spec.dtype, layout.spec.shape, layout.row_stride);
}

absl::StatusOr<ResultTypes> Check(const RunArgs& args) {
  ProgramRules rules(args.program, /*foreign_steps=*/true);
  RETURN_IF_ERROR(CheckInputCount(args.inputs.size()));
  for (const auto& input : args.inputs) {
    RETURN_IF_ERROR(
        rules.AddInput(input.first, [&](const std::string& field) { return Read(field, input.second); }));
  }
  const auto ignore = [](const ConvertedStep&, const std::string&) {};
  RETURN_IF_ERROR(rules.CheckSteps(ReadValue, ignore));
  ResultTypes types;
  RETURN_IF_ERROR(rules.CheckOutputs(
      ignore, [&](const std::string& field, const std::string&, const MaybeOperand& result) -> absl::Status {
        types.emplace_back();
        if (!result || result->count_tensor >= 0) return absl::OkStatus();
        ASSIGN_OR_RETURN(const std::size_t bytes, StorageBytes(field, result->dtype, result->shape, 0));
        types.back() = ArrayType{result->dtype, result->shape, bytes};
        return absl::OkStatus();
      }));
  RETURN_IF_ERROR(rules.CheckAllUsed());
  return types;
}

}  // namespace

absl::StatusOr<ResultTypes> ResultTypesOf(const RunArgs& args) {
  absl::StatusOr<ResultTypes> types = Check(args);
  if (!types.ok()) return InOneStep(args, types.status());
  return types;
}

}  // namespace warpline::client
