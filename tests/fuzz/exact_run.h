// Runs a plan step by step on memory of exactly the size of each tensor.
#ifndef WARPLINE_TESTS_FUZZ_EXACT_RUN_H_
#define WARPLINE_TESTS_FUZZ_EXACT_RUN_H_

#include <cstddef>
#include <vector>

#include "server/memory/buffer.h"
#include "server/plan/plan.h"

namespace warpline::testing {

// True if the plan takes well below a millisecond, also under a sanitizer.
bool IsCheap(const Plan& plan);

// Does what a lane of the cpu backend does, with the same kernels. But each tensor and each workspace is an
// allocation of its own. In a lane's areas, AddressSanitizer cannot tell where one tensor ends. `tensors` are
// those of the program, by number. Of the tensors that steps write, only the size must be set.
void RunExactly(const Plan& plan, const ScalarValues& scalars, const std::vector<Buffer>& tensors);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_FUZZ_EXACT_RUN_H_
