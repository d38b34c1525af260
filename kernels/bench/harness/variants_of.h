// The variants that a case asks for, with their launchers bound to the problem. Reads the tables: a new row
// needs nothing here.
#ifndef WARPLINE_KERNELS_BENCH_HARNESS_VARIANTS_OF_H_
#define WARPLINE_KERNELS_BENCH_HARNESS_VARIANTS_OF_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
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

// Returns the rows of a table in the order of the ladder (docs/kernels.md): first by step, then the rows that
// are not on the ladder (step 0), in table order.
template <typename Row>
std::vector<const Row*> Climb(std::span<const Row> table) {
  std::vector<const Row*> rows;
  for (const Row& row : table) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [](const Row* a, const Row* b) {
    return static_cast<unsigned>(a->step) - 1 < static_cast<unsigned>(b->step) - 1;  // 0 comes last
  });
  return rows;
}

// Returns the variants of the case. For the server's own choice they are in table order, by which the server
// chooses. Otherwise they are in ladder order (see Climb). `device` must outlive them.
std::vector<BoundVariant> VariantsOf(const Case& bench_case, const Device& device);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_HARNESS_VARIANTS_OF_H_
