// The sources of the inputs of one request, and the destinations of its outputs.
#ifndef WARPLINE_SERVER_PLAN_BINDING_H_
#define WARPLINE_SERVER_PLAN_BINDING_H_

#include <cstddef>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "kernels/program.h"
#include "server/memory/buffer.h"

namespace warpline {

// Joins a tensor of a plan to its source, if it is an input, or to its sink, if it is an output. Inline ones
// travel in the message, and lie in a range of the staging slot for that area. Others have memory of their
// own. Of Area::kResident: a resident tensor, or one that is to become resident, for which memory is found
// once the device is known. Of Area::kShared: a slice of a shared region.
struct Binding {
  int tensor = 0;
  Placement staged = {};
  Buffer memory = {};  // of its own
};
using Bindings = absl::InlinedVector<Binding, 4>;

// Returns whether kernels can compute on all of the shared slices as on tensors that the server has placed. A
// client may let its slices begin at any address, but kernels access aligned words.
bool SharedSlicesAreAligned(std::span<const Binding> bindings);

// The bytes of a program's resident operands on each of so many devices. An operand that is bound several
// times counts as often. Uploads, which have no memory yet, do not count.
using DeviceBytes = absl::InlinedVector<std::size_t, 8>;
DeviceBytes OperandBytes(std::span<const Binding> bindings, int num_inputs, std::size_t devices);

// The operands of a program that lie on other devices than the one that runs it, and a block of its memory
// for copies of them. An operand that is bound several times is copied once.
struct PeerOperands {
  struct Copy {
    std::size_t binding = 0;  // of an operand
    std::size_t offset = 0;   // of its copy in the block
    bool is_first = true;     // otherwise an earlier binding has the same bytes, and this is their copy too
  };
  std::vector<Copy> copies;
  std::size_t bytes = 0;  // of the block
};
PeerOperands FindPeerOperands(std::span<const Binding> bindings, int num_inputs, int device);

// All inputs and outputs of a plan, where the plan places them. Those with memory of their own lack it yet.
Bindings MakeBindings(const MemoryPlan& plan);

}  // namespace warpline

#endif  // WARPLINE_SERVER_PLAN_BINDING_H_
