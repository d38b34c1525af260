#include "tests/fuzz/exact_run.h"

#include <algorithm>
#include <cstdlib>
#include <variant>

#include "kernels/cpu/cpu_variants.h"
#include "server/device/select_variant.h"
#include "tests/fuzz/exact_memory.h"

namespace warpline::testing {

bool IsCheap(const Plan& plan) {
  constexpr std::size_t kBytes = 64 << 10;
  constexpr double kFlops = 1 << 17;
  if (plan.tensor_bytes > kBytes || plan.memory.scratch_bytes > kBytes) return false;
  double flops = 0;
  for (const Step& step : plan.program.steps) flops += FlopsOf(step.problem) + BytesOf(step.problem);
  return flops <= kFlops;
}

void RunExactly(const Plan& plan, const ScalarValues& scalars, const std::vector<Buffer>& tensors) {
  constexpr DeviceTraits kTraits;
  std::size_t next_scalars = 0;
  for (const Step& step : plan.program.steps) {
    Operands operands;
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      operands.in[i] = tensors[static_cast<std::size_t>(step.inputs[i])].bytes().data() +
                       (step.input_offsets.empty() ? 0 : step.input_offsets[i]);
    }
    operands.out = tensors[static_cast<std::size_t>(step.output)].bytes().data() + step.output_offset;
    for (std::size_t i = 0; i < step.further.size(); ++i) {
      operands.further[i] = tensors[static_cast<std::size_t>(step.further[i])].bytes().data();
    }
    if (const int count = ScalarCount(step.problem); count > 0) {
      operands.scalars = &scalars.at(next_scalars);
      next_scalars += static_cast<std::size_t>(count);
    }
    const auto run = [&](const auto& problem) {
      const auto* row = FindVariant(CpuTable(problem), problem, step.variant, kTraits);
      if (row == nullptr) std::abort();  // the plan was compiled for what there is
      const Buffer workspace = ExactMemory(row->workspace_bytes(problem, kTraits));
      operands.workspace = workspace.bytes().data();
      operands.workspace_bytes = workspace.bytes().size();
      const auto has_elements = [&](int tensor) {
        return plan.program.tensors[static_cast<std::size_t>(tensor)].shape.Count() > 0;
      };
      if (has_elements(step.output) || std::any_of(step.further.begin(), step.further.end(), has_elements)) {
        row->launch(problem, operands);
      }
    };
    std::visit(run, step.problem);
  }
}

}  // namespace warpline::testing
