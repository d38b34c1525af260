// Where the inputs of one request come from, and where its outputs go.
#ifndef WARPLINE_SERVER_PLAN_BINDING_H_
#define WARPLINE_SERVER_PLAN_BINDING_H_

#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "kernels/program.h"

namespace warpline {

// Joins a tensor of a plan to its source, if it is an input, or to its sink, if it is an output. All are
// inline: the bytes travel in the message, and lie in a range of the staging slot for that region. A source
// that has memory of its own, such as a slice of a shared region or a resident tensor, will be a Buffer here.
struct Binding {
  int tensor = 0;
  Placement staged;
};
using Bindings = absl::InlinedVector<Binding, 4>;

// All inputs and outputs of a plan inline, where the plan places them.
Bindings InlineBindings(const MemoryPlan& plan);

}  // namespace warpline

#endif  // WARPLINE_SERVER_PLAN_BINDING_H_
