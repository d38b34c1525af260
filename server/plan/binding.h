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

// Joins a tensor of a plan to its source, if it is an input, or to its sink, if it is an output. Inline
// tensors are part of the message and lie in a range of the staging slot for their area. Others have memory
// of their own. With Area::kResident this is a resident tensor, or memory for a new one, which is allocated
// once the device is known. With Area::kShared it is a slice of a shared region.
struct Binding {
  int tensor = 0;
  Placement staged = {};
  Buffer memory = {};  // its own memory; empty for inline tensors
  // For an operand on another device than the one that runs the program: memory of that device for a copy of
  // it, which the lane makes. Empty: the lane finds memory for the copy.
  Buffer copy = {};
};
using Bindings = absl::InlinedVector<Binding, 4>;

// Returns whether kernels can use all shared slices like tensors that the server has placed. Clients may let
// slices begin at any address, but kernels access aligned words.
bool SharedSlicesAreAligned(std::span<const Binding> bindings);

// Returns whether the binding is an operand with bytes in the memory of a device. Uploads have no memory yet.
bool IsOnDevice(const Binding& binding, int num_inputs);

// Returns the bytes of a program's resident operands on each of `devices` devices. An operand that is bound
// several times counts each time.
using DeviceBytes = absl::InlinedVector<std::size_t, 8>;
DeviceBytes OperandBytes(std::span<const Binding> bindings, int num_inputs, std::size_t devices);

// The operands of a program that lie on other devices than the one that runs it. Those whose binding has no
// memory for the copy get a place in a block. An operand that is bound several times is copied once.
struct PeerOperands {
  struct Copy {
    std::size_t binding = 0;  // the operand
    std::size_t first = 0;    // the first binding with the same bytes, whose copy this one uses
    std::size_t offset = 0;   // of the copy in the block
  };
  std::vector<Copy> copies;
  std::size_t block_bytes = 0;  // size of the block
  std::size_t bytes = 0;        // that are copied
};
PeerOperands FindPeerOperands(std::span<const Binding> bindings, int num_inputs, int device);

// Returns bindings for all inputs and outputs of a plan, where the plan places them. Memory outside the
// message is not set yet.
Bindings MakeBindings(const MemoryPlan& plan);

}  // namespace warpline

#endif  // WARPLINE_SERVER_PLAN_BINDING_H_
