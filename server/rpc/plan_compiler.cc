#include "server/rpc/plan_compiler.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/status_macros.h"
#include "proto/rules/program_rules.h"
#include "server/base/errors.h"
#include "server/device/select_variant.h"

namespace warpline {
namespace {

// Names the step with the largest result in scratch memory. Empty if there is none, or if the steps have no
// names.
std::string LargestIntermediate(const Plan& plan, const std::vector<std::string>& step_names) {
  const Step* largest = nullptr;
  const auto bytes = [&](const Step& step) {
    return plan.program.tensors[static_cast<std::size_t>(step.output)].bytes;
  };
  for (const Step& step : plan.program.steps) {
    if (plan.memory.tensors[static_cast<std::size_t>(step.output)].area != Area::kScratch) continue;
    if (largest == nullptr || bytes(step) > bytes(*largest)) largest = &step;
  }
  if (largest == nullptr || static_cast<std::size_t>(largest->part_of) >= step_names.size()) return "";
  return absl::StrCat("; step \"", step_names[static_cast<std::size_t>(largest->part_of)],
                      "\" has the largest intermediate result, ", bytes(*largest), " bytes");
}

}  // namespace

absl::StatusOr<PlanPtr> PlanCompiler::Compile(const Codec& codec, const ScannedMessage& message,
                                              const References& references) const {
  ASSIGN_OR_RETURN(DecodedPlan decoded, DecodePlan(codec, message, references, limits_));
  const Program& program = decoded.plan.program;
  for (const Step& step : program.steps) {
    absl::Status suits = engine_.backend.CheckVariant(step.problem, step.variant);
    if (suits.ok() && decoded.reproducible) {
      suits = CheckReproducible(variants_, OpOf(step.problem), step.variant);
    }
    RETURN_IF_ERROR(InStep(suits, static_cast<std::size_t>(step.part_of), decoded.step_names));
  }
  return Complete(codec, std::move(decoded.plan), decoded.step_names);
}

absl::StatusOr<PlanPtr> PlanCompiler::Complete(const Codec& codec, Plan plan,
                                               const std::vector<std::string>& step_names) const {
  absl::StatusOr<CompiledProgram> compiled = engine_.backend.Compile(plan.program, plan.memory);
  if (!compiled.ok()) {
    return FieldError(codec.whole,
                      absl::StrCat(compiled.status().message(), LargestIntermediate(plan, step_names)));
  }
  plan.compiled = std::move(compiled->program);
  plan.device_seconds = compiled->seconds;
  plan.device_bytes = compiled->device_bytes;
  plan.max_parts = compiled->max_parts;
  RETURN_IF_ERROR(CheckSize(codec, plan));
  return std::make_shared<const Plan>(std::move(plan));
}

// A request that can never fit is refused here, because later it would wait forever.
absl::Status PlanCompiler::CheckSize(const Codec& codec, const Plan& plan) const {
  const auto refused = [&codec](const absl::Status& status) {
    return FieldError(codec.whole, std::string_view(status.message().data(), status.message().size()));
  };
  if (!HasTimeFor(plan)) {
    return FieldError(
        codec.whole,
        absl::StrFormat("the request, with its sizes and variants, would take about %.3g s on the "
                        "device; the limit is %g s (the server's --max-device-seconds)",
                        plan.device_seconds, max_device_seconds_.load()));
  }
  if (const absl::Status fits = engine_.admission.CheckFits(static_cast<std::int64_t>(plan.HostBytes()));
      !fits.ok()) {
    return refused(fits);
  }
  if (engine_.pool.CanEverHold(plan.memory.input_bytes, plan.memory.output_bytes)) return absl::OkStatus();
  return FieldError(codec.whole,
                    absl::StrCat("the request's ", plan.memory.input_bytes, " bytes and its result's ",
                                 plan.memory.output_bytes, " do not fit into ", engine_.pool.total_bytes(),
                                 " bytes of staging memory"));
}

}  // namespace warpline
