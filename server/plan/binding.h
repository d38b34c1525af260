// Where the inputs of one request come from, and where its outputs go.
#ifndef WARPLINE_SERVER_PLAN_BINDING_H_
#define WARPLINE_SERVER_PLAN_BINDING_H_

#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "kernels/program.h"
#include "server/memory/buffer.h"

namespace warpline {

// Joins a tensor of a plan to its source, if it is an input, or to its sink, if it is an output. Inline ones
// travel in the message, and lie in a range of the staging slot for that region. Those of Region::kBound have
// memory of their own: a resident tensor, or one that is to become resident, for which memory is found once
// the device is known.
struct Binding {
  int tensor = 0;
  Placement staged = {};
  Buffer memory = {};  // of Region::kBound
};
using Bindings = absl::InlinedVector<Binding, 4>;

// All inputs and outputs of a plan, where the plan places them. Those that are bound have no memory yet.
Bindings MakeBindings(const MemoryPlan& plan);

}  // namespace warpline

#endif  // WARPLINE_SERVER_PLAN_BINDING_H_
