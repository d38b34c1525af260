// Device memory of a measured problem: several sets of operands, so that a set can have left the L2 when its
// turn comes again.
#ifndef WARPLINE_KERNELS_BENCH_HARNESS_OPERAND_SLOTS_H_
#define WARPLINE_KERNELS_BENCH_HARNESS_OPERAND_SLOTS_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/bench/suites/cases.h"
#include "kernels/gpu/handle.h"
#include "kernels/variant.h"

namespace warpline::bench {

// Bytes of one set: inputs and result.
std::size_t SetBytes(const Problem& problem);
std::int64_t OutCount(const Problem& problem);
DType OutDType(const Problem& problem);
std::size_t OutBytes(const Problem& problem);

class OperandSlots {
 public:
  // Inputs are random, another draw in each slot. All slots share one workspace: launches are in one stream.
  OperandSlots(const Problem& problem, int slots, std::size_t workspace_bytes, cudaStream_t stream);

  int count() const { return static_cast<int>(sets_.size()); }
  Operands At(int slot) const;

 private:
  std::vector<gpu::DeviceBytes> sets_;
  std::vector<Operands> operands_;
  gpu::DeviceBytes scalars_, workspace_;
};

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_HARNESS_OPERAND_SLOTS_H_
