#include "server/plan/plan.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace warpline {

double ValueOf(const PlannedScalar& planned, std::span<const double> values) {
  return planned.index == PlannedScalar::kAbsent ? planned.otherwise : values[planned.index];
}

bool Plan::Streams() const {
  return num_uploads > 0 || std::any_of(outputs.begin(), outputs.end(),
                                        [](const PlannedOutput& output) { return output.streamed; });
}

Plan MakePlan(Program program, const OwnMemory& own) {
  Plan plan;
  plan.memory = PlanMemory(program, own);
  for (int i = 0; i < program.num_inputs; ++i) plan.tensor_bytes += program.tensors[i].bytes;
  for (int output : program.outputs) {
    plan.tensor_bytes += program.tensors[output].bytes;
    PlannedOutput& planned = plan.outputs.emplace_back();
    planned.spec = program.tensors[output];
    planned.offset = plan.memory.tensors[output].offset;
  }
  plan.program = std::move(program);
  return plan;
}

std::vector<std::string> VariantsByPart(const Program& program, std::span<const std::string_view> variants) {
  std::vector<std::string> parts(static_cast<std::size_t>(program.num_parts));
  std::vector<std::string_view> last(parts.size());
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const auto part = static_cast<std::size_t>(program.steps[i].part_of);
    if (variants[i] == last[part]) continue;
    last[part] = variants[i];
    if (!parts[part].empty()) parts[part] += '+';
    parts[part] += variants[i];
  }
  for (std::string& part : parts) {
    if (part.empty()) part = "view";
  }
  return parts;
}

ScalarValues ScalarsOf(std::span<const PlannedScalars> planned, std::span<const double> values) {
  ScalarValues all;
  all.reserve(planned.size());
  for (const PlannedScalars& step : planned) {
    const double alpha = ValueOf(step.alpha, values), beta = ValueOf(step.beta, values);
    // A value that is too large for a float becomes infinity, as in any rounding.
    StepScalars& scalars = all.emplace_back(StepScalars{.alpha_f32 = static_cast<float>(alpha),
                                                        .beta_f32 = static_cast<float>(beta),
                                                        .alpha_f64 = alpha,
                                                        .beta_f64 = beta});
    if (step.integer.has_value()) scalars.alpha_i64 = *step.integer;
    if (!step.integers) continue;
    scalars.alpha_i64 = static_cast<std::int64_t>(alpha);
    scalars.beta_i64 = static_cast<std::int64_t>(beta);
  }
  return all;
}

}  // namespace warpline
