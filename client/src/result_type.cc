#include "client/src/result_type.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
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

// Returns the types of the program's outputs. `rules` has all inputs.
absl::StatusOr<ResultTypes> TypesOfOutputs(ProgramRules& rules) {
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
  return types;
}

absl::StatusOr<ResultTypes> Check(const RunArgs& args) {
  ProgramRules rules(args.program, /*foreign_steps=*/true);
  RETURN_IF_ERROR(CheckInputCount(args.inputs.size()));
  for (const auto& input : args.inputs) {
    RETURN_IF_ERROR(
        rules.AddInput(input.first, [&](const std::string& field) { return Read(field, input.second); }));
  }
  ASSIGN_OR_RETURN(ResultTypes types, TypesOfOutputs(rules));
  RETURN_IF_ERROR(rules.CheckAllUsed());
  return types;
}

}  // namespace

absl::StatusOr<ResultTypes> ResultTypesOf(const RunArgs& args) {
  absl::StatusOr<ResultTypes> types = Check(args);
  if (!types.ok()) return InOneStep(args, types.status());
  return types;
}

absl::StatusOr<std::optional<ArrayType>> TypeInProgram(const v1::Program& program,
                                                       const ProgramInputs& inputs, const std::string& name) {
  std::map<std::string, const Operand*> read;  // names that are no results, with what is known of them
  std::set<std::string> results;
  for (const v1::Step& step : program.steps()) {
    for (const std::string& input : step.inputs()) {
      if (results.count(input) == 0) read.emplace(input, nullptr);
    }
    results.insert(step.name());
    for (const FurtherName& further : FurtherNames(step)) results.insert(*further.name);
  }
  if (results.count(name) == 0) read.emplace(name, nullptr);
  for (const auto& [input, operand] : inputs) {
    if (const auto found = read.find(input); found != read.end()) found->second = &operand;
  }
  v1::Program asked = program;
  asked.clear_outputs();
  if (results.count(name) > 0) {
    asked.add_outputs(name);
  } else {  // an input is no output: ask for a view of it
    v1::Step& view = *asked.add_steps();
    view.set_name(absl::StrCat(asked.steps_size(), ".view"));
    view.add_inputs(name);
    view.mutable_slice();
    asked.add_outputs(view.name());
  }
  ProgramRules rules(asked, /*foreign_steps=*/true);
  for (const auto& each : read) {
    RETURN_IF_ERROR(rules.AddInput(each.first, [&](const std::string& field) -> absl::StatusOr<MaybeOperand> {
      if (each.second == nullptr) return std::nullopt;
      return Read(field, *each.second);
    }));
  }
  ASSIGN_OR_RETURN(const ResultTypes types, TypesOfOutputs(rules));
  return types[0];
}

}  // namespace warpline::client
