// Transpose by the simplest loops: one element at a time, no blocking.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/launchers.h"
#include "kernels/cpu/looks.h"
#include "kernels/cpu/strided.h"

namespace warpline::cpu {

void TransposeReference(const TransposeProblem& problem, const Operands& operands) {
  const auto* x = static_cast<const std::byte*>(operands.in[0]);
  auto* y = static_cast<std::byte*>(operands.out);
  const std::size_t size = SizeOf(problem.dtype);
  const Shape& shape = problem.shape;
  const std::int64_t count = shape.Count();
  const auto strides = RowMajorStrides(shape, problem.row_stride);

  PerAxis<std::int64_t> index{};  // of y
  Looks looks(operands.interest);
  for (std::int64_t i = 0; i < count; ++i) {
    constexpr std::int64_t kWork = 8;
    if (looks.Stop(kWork)) return;
    std::int64_t offset = 0;
    for (int axis = 0; axis < shape.rank; ++axis) offset += index[axis] * strides[problem.perm[axis]];
    std::memcpy(y + i * size, x + offset * size, size);
    for (int axis = shape.rank - 1; axis >= 0; --axis) {
      if (++index[axis] < shape[problem.perm[axis]]) break;
      index[axis] = 0;
    }
  }
}

}  // namespace warpline::cpu
