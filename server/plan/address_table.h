// The addresses of a program's tensors for one launch: all that running its steps needs to know of memory.
#ifndef WARPLINE_SERVER_PLAN_ADDRESS_TABLE_H_
#define WARPLINE_SERVER_PLAN_ADDRESS_TABLE_H_

#include <cstddef>
#include <span>

#include "absl/container/inlined_vector.h"
#include "kernels/program.h"
#include "kernels/variant.h"
#include "server/plan/binding.h"

namespace warpline {

// Addresses that whoever runs the steps can use: a kernel on a device, or a thread. The ways to launch a
// program differ in how they fill the table, never in how its steps are run.
struct AddressTable {
  absl::InlinedVector<std::byte*, 8> tensors;  // by tensor index
  absl::InlinedVector<const StepScalars*, 4>
      scalars;  // by step index; means nothing for steps that read none
  std::span<std::byte> workspace;

  // For a program with this plan; all addresses are null.
  explicit AddressTable(const MemoryPlan& plan)
      : tensors(plan.tensors.size(), nullptr), scalars(plan.scalars.size(), nullptr) {}

  // Each says that an area lies at `base`: the staging slot itself, or an image of it on a device. Scalars
  // travel with the inputs that come inline.
  void PlaceInputs(const MemoryPlan& plan, std::span<const Binding> bindings, std::byte* base);
  void PlaceOutputs(std::span<const Binding> bindings, std::byte* base);
  void PlaceScratch(const MemoryPlan& plan, std::byte* base);
  // Places the tensors that have memory of their own on the device, where they are.
  void PlaceResident(std::span<const Binding> bindings);
  // Place the tensors that have memory of their own on the host: where they are, or at their images on a
  // device.
  void PlaceShared(std::span<const Binding> bindings);
  void PlaceSharedImages(std::span<const Binding> bindings, std::byte* base);

  // Returns the operands of one step. The scalars are left out if the step reads none.
  Operands OperandsOf(const Step& step, std::size_t index) const;
};

// The offsets of a plan's areas in one block of memory that holds all of them. The space that is left behind
// the areas is workspace.
struct BlockLayout {
  std::size_t input = 0, output = 0, shared = 0, scratch = 0, workspace = 0;
  explicit BlockLayout(const MemoryPlan& plan);
};

// All areas in one block, which is at least as long as BlockLayout::workspace says.
AddressTable TableInBlock(const MemoryPlan& plan, std::span<const Binding> bindings,
                          std::span<std::byte> block);

}  // namespace warpline

#endif  // WARPLINE_SERVER_PLAN_ADDRESS_TABLE_H_
