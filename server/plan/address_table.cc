#include "server/plan/address_table.h"

#include "kernels/align.h"

namespace warpline {

void AddressTable::PlaceInputs(const MemoryPlan& plan, std::span<const Binding> bindings, std::byte* base) {
  for (const Binding& binding : bindings) {
    if (binding.staged.area == Area::kInput) tensors[binding.tensor] = base + binding.staged.offset;
  }
  for (std::size_t i = 0; i < plan.scalars.size(); ++i) {
    scalars[i] = reinterpret_cast<const StepScalars*>(base + plan.scalars[i]);
  }
}

void AddressTable::PlaceOutputs(std::span<const Binding> bindings, std::byte* base) {
  for (const Binding& binding : bindings) {
    if (binding.staged.area == Area::kOutput) tensors[binding.tensor] = base + binding.staged.offset;
  }
}

void AddressTable::PlaceScratch(const MemoryPlan& plan, std::byte* base) {
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i].area == Area::kScratch) tensors[i] = base + plan.tensors[i].offset;
  }
}

void AddressTable::PlaceResident(std::span<const Binding> bindings) {
  for (const Binding& binding : bindings) {
    if (binding.staged.area == Area::kResident) tensors[binding.tensor] = binding.memory.bytes().data();
  }
}

void AddressTable::PlaceShared(std::span<const Binding> bindings) {
  for (const Binding& binding : bindings) {
    if (binding.staged.area == Area::kShared) tensors[binding.tensor] = binding.memory.bytes().data();
  }
}

void AddressTable::PlaceSharedImages(std::span<const Binding> bindings, std::byte* base) {
  for (const Binding& binding : bindings) {
    if (binding.staged.area == Area::kShared) tensors[binding.tensor] = base + binding.staged.offset;
  }
}

Operands AddressTable::OperandsOf(const Step& step, std::size_t index) const {
  Operands operands;
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    operands.in[i] = tensors[step.inputs[i]] + (step.input_offsets.empty() ? 0 : step.input_offsets[i]);
  }
  operands.out = tensors[step.output] + step.output_offset;
  for (std::size_t i = 0; i < step.further.size(); ++i) operands.further[i] = tensors[step.further[i]];
  if (ScalarCount(step.problem) > 0) operands.scalars = scalars[index];
  operands.workspace = workspace.data();
  operands.workspace_bytes = workspace.size();
  return operands;
}

BlockLayout::BlockLayout(const MemoryPlan& plan)
    : output(AlignUp(plan.input_bytes, kTensorAlignment)),
      shared(AlignUp(output + plan.output_bytes, kTensorAlignment)),
      scratch(AlignUp(shared + plan.shared_bytes, kTensorAlignment)),
      workspace(AlignUp(scratch + plan.scratch_bytes, kTensorAlignment)) {}

AddressTable TableInBlock(const MemoryPlan& plan, std::span<const Binding> bindings,
                          std::span<std::byte> block) {
  const BlockLayout layout(plan);
  AddressTable table(plan);
  table.PlaceInputs(plan, bindings, block.data() + layout.input);
  table.PlaceOutputs(bindings, block.data() + layout.output);
  table.PlaceScratch(plan, block.data() + layout.scratch);
  table.PlaceResident(bindings);
  table.PlaceSharedImages(bindings, block.data() + layout.shared);
  table.workspace = block.subspan(layout.workspace);
  return table;
}

}  // namespace warpline
