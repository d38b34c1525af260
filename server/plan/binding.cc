#include "server/plan/binding.h"

namespace warpline {

Bindings MakeBindings(const MemoryPlan& plan) {
  Bindings bindings;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i].region == Region::kScratch) continue;
    bindings.push_back({.tensor = static_cast<int>(i), .staged = plan.tensors[i]});
  }
  return bindings;
}

}  // namespace warpline
