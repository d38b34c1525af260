#include "server/rpc/result_copies.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/status_macros.h"
#include "server/rpc/call_memory.h"
#include "server/rpc/copy_plan.h"
#include "server/rpc/region_slices.h"

namespace warpline {
namespace {

// Returns the sizes of the first axes of the results, as the first job has computed them.
std::vector<std::int64_t> FoundSizes(const Plan& counted, const Result& result) {
  std::vector<std::int64_t> sizes;
  for (const std::size_t place : counted.counts) {
    std::int64_t size = 0;
    if (place != Plan::kNoCount) std::memcpy(&size, result.output.bytes().data() + place, sizeof(size));
    sizes.push_back(size);
  }
  return sizes;
}

// Allocates memory for a copy of the first `bytes` bytes of a result that stays on its device. Returns
// nothing if the result should stay in its present memory.
std::optional<Buffer> SmallerSink(const Caller& caller, const Buffer& computed, std::size_t bytes,
                                  TensorStore& tensors) {
  // Copying is cheaper than unused memory if at least half of the memory would stay unused.
  if (bytes > computed.bytes().size() / 2) return std::nullopt;
  absl::StatusOr<Buffer> smaller = tensors.Allocate(caller, computed.place().device, bytes);
  if (!smaller.ok()) return std::nullopt;
  return *std::move(smaller);
}

}  // namespace

absl::StatusOr<ResultCopies> CopyResults(const Plan& counted, Result result, const ScannedMessage& message,
                                         const Caller& caller, const Codec& codec,
                                         const CallContext& context) {
  const std::vector<TensorSpec> found = FoundSpecs(counted, FoundSizes(counted, result));
  std::vector<Buffer> computed;
  std::vector<std::optional<Buffer>> sinks(found.size());
  std::vector<bool> kept(found.size());
  for (std::size_t i = 0; i < counted.outputs.size(); ++i) {
    const Buffer& memory = OutputBinding(counted, i, result.bindings).memory;
    computed.push_back(memory.First(found[i].bytes));
    if (!counted.outputs[i].is_resident()) continue;
    sinks[i] = SmallerSink(caller, memory, found[i].bytes, context.engine.tensors);
    kept[i] = !sinks[i].has_value() || found[i].bytes == 0;
    if (kept[i] && sinks[i].has_value()) computed[i] = *std::move(sinks[i]);  // nothing to copy
  }
  ResultCopies copies;
  copies.job.ticket = std::move(result.ticket);
  result = Result();  // frees its memory too
  ASSIGN_OR_RETURN(Plan plan, CopyPlan(counted, found, kept, context.compiler.limits()));
  copies.any = !plan.program.steps.empty();
  ASSIGN_OR_RETURN(copies.plan, context.compiler.Complete(codec, std::move(plan)));
  const Program& program = copies.plan->program;
  copies.job.bindings = MakeBindings(copies.plan->memory);
  if (copies.plan->memory.Has(Area::kShared)) {
    RETURN_IF_ERROR(
        BindSlices(*copies.plan, message, caller.owner, context.engine.regions, copies.job.bindings));
  }
  for (Binding& binding : copies.job.bindings) {
    if (binding.tensor < program.num_inputs) {
      binding.memory = computed[static_cast<std::size_t>(binding.tensor)];
      copies.job.device = binding.memory.place().device;
      continue;
    }
    const auto output =
        std::find(program.outputs.begin(), program.outputs.end(), binding.tensor) - program.outputs.begin();
    if (auto& sink = sinks[static_cast<std::size_t>(output)]; sink.has_value()) {
      binding.memory = *std::move(sink);
    }
  }
  return copies;
}

}  // namespace warpline
