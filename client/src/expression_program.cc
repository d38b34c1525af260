#include "client/src/expression_program.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "client/src/result_type.h"
#include "kernels/map/operations.h"
#include "kernels/problem.h"
#include "kernels/status_macros.h"
#include "proto/rules/program_rules.h"
#include "proto/rules/step_table.h"
#include "proto/rules/tensor_rules.h"

namespace warpline::client {
namespace {

// The default of the command line and of NumPy is the last axis; that of the messages is the first one.
void SetDefaultAxis(ExpressionCall& call) {
  if (call.given.count("axis") > 0) return;
  if (call.step.has_sort()) call.step.mutable_sort()->set_axis(-1);
  if (call.step.has_argsort()) call.step.mutable_argsort()->set_axis(-1);
  if (call.step.has_scan()) call.step.mutable_scan()->set_axis(-1);
}

// Returns the first name that is read, by steps or as `name`, but is neither a result nor an input.
std::string MissingInput(const v1::Program& program, const ProgramInputs& inputs, const std::string& name) {
  std::set<std::string> known;
  for (const auto& input : inputs) known.insert(input.first);
  for (const v1::Step& step : program.steps()) {
    for (const std::string& input : step.inputs()) {
      if (known.count(input) == 0) return input;
    }
    known.insert(step.name());
    for (const FurtherName& further : FurtherNames(step)) known.insert(*further.name);
  }
  return known.count(name) == 0 ? name : "";
}

// Returns whether operand `index` of the call may be a number, and whether it is one of indices.
struct NumberRule {
  bool may_be = false, is_index = false;
};
NumberRule RuleOf(const v1::Step& step, std::size_t index) {
  switch (step.operation_case()) {
    case v1::Step::kTake:
      return {index == 1, true};
    case v1::Step::kPutAlongAxis:
      return {index == 2, false};
    case v1::Step::kSearchsorted:
    case v1::Step::kSetSlice:
    case v1::Step::kPad:
      return {index == 1, false};
    default:
      return {};
  }
}

}  // namespace

absl::Status ColumnError(std::size_t at, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("column ", at + 1, ": ", what));
}

absl::StatusOr<Tree> ExpressionProgram::Add(std::size_t at, v1::Step step, const std::string& operation) {
  if (program_.steps_size() == kMaxSteps) {
    return ColumnError(at, absl::StrCat("more than ", kMaxSteps, " operations"));
  }
  // A name in the text cannot start with a digit, so this name is unique.
  last_step_ = absl::StrCat(program_.steps_size() + 1, ".", operation);
  step.set_name(last_step_);
  *program_.add_steps() = std::move(step);
  return Tree{.at = at, .name = last_step_};
}

absl::StatusOr<Tree> ExpressionProgram::AddCall(std::size_t at, ExpressionCall& call) {
  const StepRow& row = *RowOf(call.step);
  const int wanted = row.operands, given = static_cast<int>(call.operands.size());
  if (wanted == kAnyNumber ? given == 0 : given != wanted) {
    if (wanted == kAnyNumber) return ColumnError(at, absl::StrCat(call.name, " has no operands"));
    return ColumnError(at, absl::StrCat(call.name, " has ", given, " operands instead of ", wanted));
  }
  // The name of a reduction, such as mean, gives its op.
  const bool lacks_field = !row.required.empty() && call.given.count(std::string(row.required)) == 0;
  if (lacks_field && call.name == row.name) {
    return ColumnError(at, absl::StrCat(call.name, " lacks ", ShortName(std::string(row.required)),
                                        ", as in ", std::string(row.example)));
  }
  if (!call.c.empty()) {
    v1::GemmStep& gemm = *call.step.mutable_gemm();
    if (!gemm.has_beta()) gemm.set_beta(1);
    if (gemm.beta() == 0) return ColumnError(at, "with beta=0 there is no use for c");
  }
  if (call.last.has_value()) {
    if (call.step.has_searchsorted()) call.step.mutable_searchsorted()->set_has_sorter(true);
    call.operands.push_back(*call.last);
  }
  RETURN_IF_ERROR(MakeArrays(at, call));
  if (!call.c.empty()) call.step.add_inputs(call.c);
  if (!call.bias.empty()) {
    call.step.mutable_gemm()->set_has_bias(true);
    call.step.add_inputs(call.bias);
  }
  SetDefaultAxis(call);
  return Add(at, std::move(call.step), call.name);
}

absl::Status ExpressionProgram::MakeArrays(std::size_t at, ExpressionCall& call) {
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const Tree& operand = call.operands[i];
    const NumberRule rule = RuleOf(call.step, i);
    std::string name;
    if (operand.is_number() && rule.may_be) {
      DType dtype = DType::kI64;
      if (!rule.is_index) {
        ASSIGN_OR_RETURN(const TensorSpec first,
                         TypeOf(at, absl::StrCat("a number in ", call.name), call.step.inputs(0)));
        dtype = first.dtype;
      }
      ASSIGN_OR_RETURN(name, Constant(operand, dtype));
    } else {
      ASSIGN_OR_RETURN(name, NameOf(operand));
    }
    call.step.add_inputs(name);
  }
  return absl::OkStatus();
}

absl::StatusOr<Tree> ExpressionProgram::Elementwise(std::size_t at, const MapOpRow& row,
                                                    std::vector<Tree> operands) {
  if (std::all_of(operands.begin(), operands.end(), [](const Tree& x) { return x.is_number(); })) {
    if (const std::optional<Tree> number = NumberOf(row, operands)) return *number;
    return ColumnError(at, absl::StrCat("expected an array among the operands: ", std::string(row.name),
                                        " of numbers alone is not computed"));
  }
  Tree tree{.at = at, .row = &row, .operands = std::move(operands)};
  for (const Tree& operand : tree.operands) tree.nodes += operand.nodes;
  if (tree.nodes <= kMaxMapInputs || MapStepOf(tree).has_value()) return tree;
  for (Tree& operand : tree.operands) {
    if (operand.is_number()) continue;
    ASSIGN_OR_RETURN(const std::string name, NameOf(operand));
    operand = {.at = operand.at, .name = name};
  }
  return tree;
}

absl::StatusOr<std::string> ExpressionProgram::NameOf(const Tree& tree) {
  if (!tree.name.empty()) return tree.name;
  if (tree.is_number()) return ColumnError(tree.at, "expected an array, not a number");
  ASSIGN_OR_RETURN(const Tree step, Add(tree.at, *MapStepOf(tree), std::string(tree.row->name)));
  return step.name;
}

absl::StatusOr<std::string> ExpressionProgram::Constant(const Tree& number, DType dtype,
                                                        absl::Span<const std::int64_t> sizes) {
  v1::Step step;
  v1::MapNode& node = *step.mutable_map()->add_nodes();
  node.set_op(v1::MAP_OP_CONSTANT);
  node.set_data_type(warpline::ToProto(dtype));
  if (IsFloat(dtype) || IsComplex(dtype)) {
    node.set_real(number.real);
  } else if (number.integer.has_value()) {
    node.set_integer(*number.integer);
  } else {
    return ColumnError(number.at, absl::StrCat(number.real, " is no whole number, and the array is of ",
                                               std::string(Name(dtype))));
  }
  for (const std::int64_t size : sizes) step.mutable_map()->add_shape(size);
  ASSIGN_OR_RETURN(const Tree constant, Add(number.at, std::move(step), "constant"));
  return constant.name;
}

absl::StatusOr<TensorSpec> ExpressionProgram::TypeOf(std::size_t at, const std::string& what,
                                                     const std::string& name) const {
  const absl::StatusOr<std::optional<ArrayType>> type = TypeInProgram(program_, inputs_, name);
  if (!type.ok()) return ColumnError(at, std::string(type.status().message()));
  if (!type->has_value()) {
    const std::string missing = MissingInput(program_, inputs_, name);
    if (missing == "None" || missing == "newaxis") {
      return ColumnError(at, "an index adds no axes here: reshape(x, shape=[...]) does");
    }
    if (!missing.empty()) {
      return absl::FailedPreconditionError(absl::StrCat("column ", at + 1, ": ", what,
                                                        " needs the type and shape of the input ", missing,
                                                        ", which is not given"));
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "column ", at + 1, ": ", what, " needs a type and shape that are not known here: those of ", name));
  }
  return **type;
}

v1::Program ExpressionProgram::Finish(const std::string& output) {
  program_.add_outputs(output);
  return std::move(program_);
}

}  // namespace warpline::client
