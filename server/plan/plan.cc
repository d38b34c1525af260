#include "server/plan/plan.h"

#include <utility>

namespace warpline {

Plan MakePlan(Program program) {
  Plan plan;
  plan.memory = PlanMemory(program);
  plan.signature = Signature(program);
  for (int output : program.outputs) {
    plan.outputs.push_back({"", program.tensors[output], plan.memory.tensors[output].offset});
  }
  plan.program = std::move(program);
  return plan;
}

}  // namespace warpline
