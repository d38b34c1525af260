// Put: copies x, then writes the values in order, so that the last one counts.
#include <algorithm>
#include <cstdint>

#include "kernels/cpu/indices.h"
#include "kernels/cpu/launchers.h"
#include "kernels/cpu/looks.h"
#include "kernels/operand_sizes.h"

namespace warpline::cpu {
namespace {

template <typename Bits, typename Index>
void PutAs(const PutProblem& problem, const Operands& operands) {
  const auto* x = static_cast<const Bits*>(operands.in[0]);
  const auto* indices = static_cast<const Index*>(operands.in[1]);
  const auto* values = static_cast<const Bits*>(operands.in[2]);
  auto* y = static_cast<Bits*>(operands.out);
  const std::int64_t size = problem.shape[problem.axis];
  Looks looks(operands.interest);
  if (!CheckIndices(indices, InputSizes(problem)[1].count, size, operands.bad_index, looks)) return;
  const std::int64_t elements = problem.shape.Count();
  if (!CopyInPieces(looks, y, x, elements * static_cast<std::int64_t>(sizeof(Bits)))) return;
  const Strides strides = RowMajorStrides(problem.shape);
  const std::int64_t count = problem.index_shape.Count();
  PerAxis<std::int64_t> at{};
  for (std::int64_t i = 0; i < count; ++i) {
    constexpr std::int64_t kWork = 8;
    if (looks.Stop(kWork)) return;
    std::int64_t index_offset = 0, value_offset = 0, y_offset = 0;
    for (int axis = 0; axis < problem.shape.rank; ++axis) {
      index_offset += at[axis] * problem.index_strides[axis];
      value_offset += at[axis] * problem.value_strides[axis];
      if (axis != problem.axis) y_offset += at[axis] * strides[axis];
    }
    const std::int64_t place = PlaceOf(LoadIndex(indices + index_offset), size);
    if (place >= 0) y[y_offset + place * strides[problem.axis]] = values[value_offset];
    for (int axis = problem.shape.rank - 1; axis >= 0; --axis) {
      if (++at[axis] < problem.index_shape[axis]) break;
      at[axis] = 0;
    }
  }
}

}  // namespace

void Put(const PutProblem& problem, const Operands& operands) {
  VisitBits(problem.dtype, [&]<typename Bits>(std::type_identity<Bits>) {
    VisitIndexType(problem.index_dtype,
                   [&]<typename Index>(std::type_identity<Index>) { PutAs<Bits, Index>(problem, operands); });
  });
}

}  // namespace warpline::cpu
