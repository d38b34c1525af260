// Computes how much memory the operands of a problem need.
#ifndef WARPLINE_KERNELS_OPERAND_SIZES_H_
#define WARPLINE_KERNELS_OPERAND_SIZES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/problem.h"

namespace warpline {

struct OperandSize {
  std::int64_t count = 0;  // elements from the first to the last, including those between rows
  DType dtype = DType::kF32;

  std::size_t Bytes() const { return static_cast<std::size_t>(count) * SizeOf(dtype); }
};

// Returns the sizes in the order of Operands::in.
std::vector<OperandSize> InputSizes(const Problem& problem);
OperandSize OutputSize(const Problem& problem);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_OPERAND_SIZES_H_
