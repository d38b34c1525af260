#include "server/plan/binding.h"

#include <algorithm>
#include <cstdint>

namespace warpline {

bool SharedSlicesAreAligned(std::span<const Binding> bindings) {
  return std::all_of(bindings.begin(), bindings.end(), [](const Binding& binding) {
    return binding.staged.area != Area::kShared ||
           reinterpret_cast<std::uintptr_t>(binding.memory.bytes().data()) % kTensorAlignment == 0;
  });
}

Bindings MakeBindings(const MemoryPlan& plan) {
  Bindings bindings;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i].area == Area::kScratch) continue;
    bindings.push_back({.tensor = static_cast<int>(i), .staged = plan.tensors[i]});
  }
  return bindings;
}

}  // namespace warpline
