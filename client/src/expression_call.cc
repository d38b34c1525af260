#include "client/src/expression_call.h"

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/src/expression_functions.h"
#include "proto/rules/step_table.h"

namespace warpline::client {

std::string OperationNames() {
  std::vector<std::string> names;
  for (const StepRow& row : StepTable()) {
    if (row.operation != v1::Step::kMap) names.emplace_back(row.name);
  }
  const auto name = [](std::string* text, const FunctionRow& row) { text->append(row.name); };
  return absl::StrCat(absl::StrJoin(names, ", "), ", ", absl::StrJoin(FunctionTable(), ", ", name),
                      ", a reduction such as mean, or an elementwise one such as exp");
}

std::string ShortName(const std::string& field) {
  if (field == "data_type") return "dtype";
  return field == "out_data_type" ? "out_dtype" : field;
}

std::string UnknownArgument(const std::string& key, const ExpressionCall& call) {
  std::vector<std::string> names;
  const auto& type = *call.operation->GetDescriptor();
  names.reserve(static_cast<std::size_t>(type.field_count()) + 1);
  for (int i = 0; i < type.field_count(); ++i) {
    const std::string name(type.field(i)->name());
    if (name == "op" && !call.TakesOp()) continue;
    names.push_back(name == "has_bias" ? "c, bias" : name == "has_sorter" ? "sorter" : ShortName(name));
  }
  if (call.step.has_pad()) names.emplace_back("values");
  const StepRow& row = *RowOf(call.step);
  const bool has_kernels =
      row.kind != StepKind::kCopies && (row.kind != StepKind::kView || call.step.has_transpose());
  if (has_kernels) names.emplace_back("variant");
  return absl::StrCat(call.name, " has no argument ", ShortName(key), ": expected ",
                      absl::StrJoin(names, ", "));
}

}  // namespace warpline::client
