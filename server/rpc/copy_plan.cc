#include "server/rpc/copy_plan.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/rules/views.h"
#include "server/base/errors.h"

namespace warpline {

std::vector<TensorSpec> FoundSpecs(const Plan& counted, std::span<const std::int64_t> sizes) {
  std::vector<TensorSpec> found;
  for (std::size_t i = 0; i < counted.outputs.size(); ++i) {
    TensorSpec& spec = found.emplace_back(counted.outputs[i].spec);
    if (counted.counts[i] == Plan::kNoCount) continue;
    spec.shape[0] = sizes[i];
    spec.bytes = static_cast<std::size_t>(spec.shape.Count()) * SizeOf(spec.dtype);
  }
  return found;
}

absl::StatusOr<Plan> CopyPlan(const Plan& counted, std::span<const TensorSpec> found,
                              const std::vector<bool>& kept, const Limits& limits) {
  Program program;
  OwnMemory own;
  std::size_t inline_bytes = 0;
  const auto count = static_cast<int>(counted.outputs.size());
  program.num_inputs = count;
  for (int i = 0; i < count; ++i) {
    const auto number = static_cast<std::size_t>(i);
    const TensorSpec& spec = found[number];
    program.tensors.push_back(spec);
    own.resident.push_back(i);
    const PlannedOutput& output = counted.outputs[number];
    if (!output.is_inline()) continue;
    inline_bytes += spec.bytes;
    if (inline_bytes <= static_cast<std::size_t>(limits.max_inline_bytes)) continue;
    return FieldError(
        absl::StrCat("program.outputs[", i, "]"),
        absl::StrCat(
            "the result is ", std::string(Name(spec.dtype)), " ", ToString(spec.shape), ", and takes ",
            spec.bytes, " bytes",
            inline_bytes == spec.bytes ? "" : absl::StrCat(", ", inline_bytes, " with those before it"),
            "; the limit is ", limits.max_inline_bytes,
            " (the server's --max-inline-bytes). A resident sink leaves it on the server"));
  }
  for (int i = 0; i < count; ++i) {
    if (kept[static_cast<std::size_t>(i)]) {
      program.outputs.push_back(i);
      continue;
    }
    const TensorSpec spec = found[static_cast<std::size_t>(i)];
    const auto copy = static_cast<int>(program.tensors.size());
    Step step = CopyOf(DenseOperand("", i, spec)).step;
    step.output = copy;
    program.steps.push_back(std::move(step));
    program.tensors.push_back(spec);
    program.outputs.push_back(copy);
    const PlannedOutput& output = counted.outputs[static_cast<std::size_t>(i)];
    if (output.slice.has_value()) {
      own.shared.push_back(copy);
    } else if (output.is_resident()) {
      own.resident.push_back(copy);
    }
  }
  Plan plan = MakePlan(std::move(program), own);
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    PlannedOutput output = counted.outputs[i];
    output.spec = plan.outputs[i].spec;
    output.offset = plan.outputs[i].offset;
    plan.outputs[i] = std::move(output);
  }
  plan.inputs.resize(static_cast<std::size_t>(count));
  plan.kind = counted.kind;
  plan.reports = counted.reports;
  return plan;
}

}  // namespace warpline
