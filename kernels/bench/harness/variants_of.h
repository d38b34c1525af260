// The variants that a case asks for, with their launchers bound to the problem. Reads the tables: a new row
// needs nothing here.
#ifndef WARPLINE_KERNELS_BENCH_HARNESS_VARIANTS_OF_H_
#define WARPLINE_KERNELS_BENCH_HARNESS_VARIANTS_OF_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "kernels/bench/harness/device.h"
#include "kernels/bench/harness/operand_slots.h"
#include "kernels/bench/suites/cases.h"

namespace warpline::bench {

struct BoundVariant {
  std::string name, summary;
  bool supported = false;
  std::size_t workspace_bytes = 0;
  std::function<cudaError_t(const Operands&, cudaStream_t)> launch;
  // The same on an alike problem of about 1/64 of the work, in the same memory; empty if there is little
  // work anyway. Tells what is too slow to be launched.
  std::function<cudaError_t(const Operands&, cudaStream_t)> launch_shrunk;
};

// Returns the variants of the case. For the server's own choice they are in table order, by which the server
// chooses. Otherwise they are in ladder order (see Climb). `device` must outlive them.
std::vector<BoundVariant> VariantsOf(const Case& bench_case, const Device& device);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_HARNESS_VARIANTS_OF_H_
