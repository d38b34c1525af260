// The addresses of a program's tensors for one launch: all that code which runs the steps needs to know about
// memory.
#ifndef WARPLINE_SERVER_PLAN_ADDRESS_TABLE_H_
#define WARPLINE_SERVER_PLAN_ADDRESS_TABLE_H_

#include <cstddef>
#include <span>

#include "absl/container/inlined_vector.h"
#include "kernels/program.h"
#include "kernels/variant.h"
#include "server/plan/binding.h"

namespace warpline {

// The addresses are valid for whatever runs the steps: a kernel on a device, or a thread. The ways to launch
// a program fill the table differently, but run its steps in the same way.
struct AddressTable {
  absl::InlinedVector<std::byte*, 8> tensors;          // by tensor index
  absl::InlinedVector<const StepScalars*, 4> scalars;  // by step index; not used for steps that read none
  std::span<std::byte> workspace;

  // A table for a program with this plan, with all addresses null.
  explicit AddressTable(const MemoryPlan& plan)
      : tensors(plan.tensors.size(), nullptr), scalars(plan.scalars.size(), nullptr) {}

  // Each sets where an area lies: `base` is the staging slot itself, or its copy on a device. Scalars are
  // part of the input area.
  void PlaceInputs(const MemoryPlan& plan, std::span<const Binding> bindings, std::byte* base);
  void PlaceOutputs(std::span<const Binding> bindings, std::byte* base);
  void PlaceScratch(const MemoryPlan& plan, std::byte* base);
  // Places the tensors that have their own memory on the device, where they are.
  void PlaceResident(std::span<const Binding> bindings);
  // Place the tensors that have their own memory on the host: where they are, or at their copies on a device,
  // which begin at `base`.
  void PlaceShared(std::span<const Binding> bindings);
  void PlaceSharedImages(std::span<const Binding> bindings, std::byte* base);

  // Returns the operands of one step. The scalars are left out if the step reads none.
  Operands OperandsOf(const Step& step, std::size_t index) const;
};

// The offsets of a plan's areas in one block of memory that holds all of them. The space after the areas is
// workspace.
struct BlockLayout {
  std::size_t input = 0, output = 0, shared = 0, scratch = 0, workspace = 0;
  explicit BlockLayout(const MemoryPlan& plan);
};

// Returns a table with all areas in one block, which has at least BlockLayout::workspace bytes.
AddressTable TableInBlock(const MemoryPlan& plan, std::span<const Binding> bindings,
                          std::span<std::byte> block);

}  // namespace warpline

#endif  // WARPLINE_SERVER_PLAN_ADDRESS_TABLE_H_
