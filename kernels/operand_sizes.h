// How much memory the operands of a problem take.
#ifndef WARPLINE_KERNELS_OPERAND_SIZES_H_
#define WARPLINE_KERNELS_OPERAND_SIZES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/problem.h"

namespace warpline {

struct OperandSize {
  std::int64_t count = 0;  // elements from the first to the last, those between rows included
  DType dtype = DType::kF32;

  std::size_t Bytes() const { return static_cast<std::size_t>(count) * SizeOf(dtype); }
};

// In the order of Operands::in.
std::vector<OperandSize> InputSizes(const Problem& problem);
OperandSize OutputSize(const Problem& problem);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_OPERAND_SIZES_H_
