#include "server/rpc/call_memory.h"

#include <algorithm>
#include <utility>

#include "kernels/status_macros.h"
#include "server/rpc/region_slices.h"

namespace warpline {
namespace {

// Returns true for an output that stays on its device.
bool IsResidentOutput(const Plan& plan, const Binding& binding) {
  return binding.tensor >= plan.program.num_inputs && binding.staged.area == Area::kResident;
}

absl::Status FindSinks(const Plan& plan, const Caller& caller, TensorStore& tensors, int device,
                       Bindings& bindings) {
  for (Binding& binding : bindings) {
    if (!IsResidentOutput(plan, binding)) continue;
    if (binding.memory.bytes().data() != nullptr) continue;  // a streamed result
    const std::size_t bytes = plan.program.tensors[static_cast<std::size_t>(binding.tensor)].bytes;
    ASSIGN_OR_RETURN(binding.memory, tensors.Allocate(caller, device, bytes));
  }
  return absl::OkStatus();
}

// Like SourceOf, for a plan that leaves its outputs on the device until they are copied to their
// destinations.
RequestSource SourceOfCounted(const Plan& plan) {
  bool in_region = false, resident = false, in_message = false;
  for (int i = 0; i < plan.program.num_inputs; ++i) {
    const Area area = plan.memory.tensors[static_cast<std::size_t>(i)].area;
    (area == Area::kShared ? in_region : area == Area::kResident ? resident : in_message) = true;
  }
  for (const PlannedOutput& output : plan.outputs) {
    (output.slice.has_value() ? in_region : output.is_resident() ? resident : in_message) = true;
  }
  if (int{in_region} + int{resident} + int{in_message} > 1) return RequestSource::kMixed;
  return in_region ? RequestSource::kRegion : resident ? RequestSource::kResident : RequestSource::kInline;
}

}  // namespace

absl::Status BindOperands(const Plan& plan, const ScannedMessage& message, std::span<const Buffer> referred,
                          OwnerId owner, RegionStore& regions, Job& job) {
  job.bindings = MakeBindings(plan.memory);
  if (plan.memory.Has(Area::kShared)) {
    RETURN_IF_ERROR(BindSlices(plan, message, owner, regions, job.bindings));
  }
  for (Binding& binding : job.bindings) {
    if (binding.tensor >= plan.program.num_inputs || binding.staged.area != Area::kResident) continue;
    const std::size_t reference = plan.inputs[static_cast<std::size_t>(binding.tensor)].reference;
    if (reference != PlannedInput::kNone) binding.memory = referred[reference];
  }
  return absl::OkStatus();
}

void FindSinksFor(const PlanPtr& plan, const Caller& caller, TensorStore& tensors, Job& job) {
  bool has_sinks = false;
  for (const Binding& binding : job.bindings) {
    if (!IsResidentOutput(*plan, binding)) continue;
    const auto output =
        std::find(plan->program.outputs.begin(), plan->program.outputs.end(), binding.tensor) -
        plan->program.outputs.begin();
    if (plan->outputs[static_cast<std::size_t>(output)].streamed) continue;
    has_sinks = true;
    job.sink_bytes += plan->program.tensors[static_cast<std::size_t>(binding.tensor)].bytes;
  }
  if (!has_sinks) return;
  job.find_sinks = [plan, caller, &tensors](int device, Bindings& bindings) {
    return FindSinks(*plan, caller, tensors, device, bindings);
  };
}

Binding& OutputBinding(const Plan& plan, std::size_t output, Bindings& bindings) {
  const int tensor = plan.program.outputs[output];
  return *std::find_if(bindings.begin(), bindings.end(),
                       [&](const Binding& candidate) { return candidate.tensor == tensor; });
}

std::vector<v1::Tensor> PlaceOutputs(const Plan& plan, const ResultSinks& sinks,
                                     const std::shared_ptr<StreamedCall>& streamed, absl::Duration lease,
                                     OwnerId owner, TensorStore& tensors, Result& result) {
  std::vector<v1::Tensor> placed;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    const PlannedOutput& output = plan.outputs[i];
    if (output.is_inline()) continue;
    const ResultSink& sink = sinks[placed.size()];
    v1::Tensor& tensor = placed.emplace_back();
    if (output.slice.has_value()) {
      *tensor.mutable_region() = sink.slice;
      continue;
    }
    Buffer& memory = OutputBinding(plan, i, result.bindings).memory;
    const absl::Duration own_lease = output.streamed ? lease : sink.lease;
    const TensorStore::Info info =
        output.streamed ? tensors.AddResult(owner, output.spec, own_lease, std::move(memory), streamed)
                        : tensors.Add(owner, output.spec, own_lease, std::move(memory));
    tensor.mutable_resident()->set_id(info.id);
    tensor.mutable_resident()->set_ttl_seconds(absl::ToDoubleSeconds(own_lease));
  }
  return placed;
}

std::vector<TensorSpec> UploadsOf(const Plan& plan) {
  std::vector<TensorSpec> uploads(plan.num_uploads);
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    const std::size_t number = plan.inputs[i].upload;
    if (number != PlannedInput::kNone) uploads[number] = plan.program.tensors[i];
  }
  return uploads;
}

std::vector<std::size_t> StreamedBytes(const Plan& plan) {
  std::vector<std::size_t> bytes;
  for (const TensorSpec& upload : UploadsOf(plan)) bytes.push_back(upload.bytes);
  for (const PlannedOutput& output : plan.outputs) {
    if (output.streamed) bytes.push_back(output.spec.bytes);
  }
  return bytes;
}

std::size_t BindStreams(const Plan& plan, std::span<const Buffer> memory, Bindings& bindings) {
  for (Binding& binding : bindings) {
    if (binding.tensor >= plan.program.num_inputs) continue;
    const std::size_t number = plan.inputs[static_cast<std::size_t>(binding.tensor)].upload;
    if (number != PlannedInput::kNone) binding.memory = memory[number];
  }
  std::size_t next = plan.num_uploads, bytes = 0;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    if (!plan.outputs[i].streamed) continue;
    OutputBinding(plan, i, bindings).memory = memory[next++];
    bytes += plan.outputs[i].spec.bytes;
  }
  return bytes;
}

RequestSource SourceOf(const Plan& plan) {
  if (plan.Streams()) return RequestSource::kStream;
  if (plan.IsCounted()) return SourceOfCounted(plan);
  const bool region = plan.memory.Has(Area::kShared), resident = plan.memory.Has(Area::kResident);
  if (!region && !resident) return RequestSource::kInline;
  const bool in_message = plan.memory.Has(Area::kInput) || plan.memory.Has(Area::kOutput);
  if ((region && resident) || in_message) return RequestSource::kMixed;
  return region ? RequestSource::kRegion : RequestSource::kResident;
}

}  // namespace warpline
