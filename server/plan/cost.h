// The cost of a program: how long a device will be busy with it, estimated before it runs.
//
// A step takes the longest of three times, plus a fixed time for each launch: the time to move its operands
// and its result through memory once, the time of its arithmetic, and the time of the elements that its
// variant handles one by one (VariantCost). Transfers between host and device are not counted. Everything is
// a pure function of the program, the table and the rates.
#ifndef WARPLINE_SERVER_PLAN_COST_H_
#define WARPLINE_SERVER_PLAN_COST_H_

#include <array>
#include <cstddef>

#include "kernels/dtype.h"
#include "kernels/program.h"
#include "kernels/variant.h"

namespace warpline {

// The rates that a device reaches on large problems with the variants that the server chooses. All are
// positive.
struct DeviceRates {
  double bytes_per_second = 0;  // read and written together
  // The rates of products, by data type of the operands. Only types that IsGemmInput accepts are used.
  std::array<double, kAllDTypes.size()> flops_per_second{};
  double tf32_flops_per_second = 0;
  double serial_seconds = 0;  // per element: see VariantCost
  double launch_seconds = 0;
};

// Returns the time of one step with this `cost`. Unit: seconds.
double StepSeconds(const Problem& problem, const VariantCost& cost, const DeviceRates& rates);

// Returns the time of all steps of a valid program, one after the other. `cost_of(step, index)` is the cost
// of the variant that runs the step. Unit: seconds.
template <typename CostOf>
double ProgramSeconds(const Program& program, const DeviceRates& rates, const CostOf& cost_of) {
  double seconds = 0;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    // A step with an empty result has nothing to do, however large the other sizes are.
    if (program.tensors[step.output].shape.Count() == 0) continue;
    seconds += StepSeconds(step.problem, cost_of(step, i), rates);
  }
  return seconds;
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_PLAN_COST_H_
