// Take: copies runs of elements that share an index at once.
#include <algorithm>
#include <cstdint>

#include "kernels/cpu/indices.h"
#include "kernels/cpu/launchers.h"
#include "kernels/cpu/looks.h"
#include "kernels/cpu/strided.h"
#include "kernels/operand_sizes.h"

namespace warpline::cpu {
namespace {

template <typename Bits, typename Index>
void TakeAs(const TakeProblem& problem, const Operands& operands) {
  const auto* x = static_cast<const Bits*>(operands.in[0]);
  const auto* indices = static_cast<const Index*>(operands.in[1]);
  auto* y = static_cast<Bits*>(operands.out);
  Looks looks(operands.interest);
  if (!CheckIndices(indices, InputSizes(problem)[1].count, problem.axis_size, operands.bad_index, looks))
    return;
  AxisList axes;  // the strides in y are those of the indices; y itself is dense
  for (int i = 0; i < problem.shape.rank; ++i) {
    axes.Append({problem.shape[i], problem.x_strides[i], problem.index_strides[i]});
  }
  const Axis inner = axes.RemoveLast();
  const auto place_at = [&](std::int64_t at) { return PlaceOf(LoadIndex(indices + at), problem.axis_size); };
  axes.ForEach([&](std::int64_t x_offset, std::int64_t index_offset) {
    if (inner.y_stride != 0) {
      constexpr std::int64_t kWork = 4;  // reads that may miss the caches
      return InPieces(looks, inner.size, kWork, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t place = place_at(index_offset + i * inner.y_stride);
          *y++ = place < 0 ? Bits{} : x[x_offset + i * inner.x_stride + place * problem.axis_stride];
        }
      });
    }
    const std::int64_t place = place_at(index_offset);
    const Bits* const run = x + x_offset + std::max<std::int64_t>(place, 0) * problem.axis_stride;
    return InPieces(looks, inner.size, 1, [&](std::int64_t begin, std::int64_t end) {
      if (place < 0) {
        y = std::fill_n(y, end - begin, Bits{});
      } else if (inner.x_stride == 1) {
        y = std::copy_n(run + begin, end - begin, y);
      } else {
        for (std::int64_t i = begin; i < end; ++i) *y++ = run[i * inner.x_stride];
      }
    });
  });
}

}  // namespace

void Take(const TakeProblem& problem, const Operands& operands) {
  VisitBits(problem.dtype, [&]<typename Bits>(std::type_identity<Bits>) {
    VisitIndexType(problem.index_dtype, [&]<typename Index>(std::type_identity<Index>) {
      TakeAs<Bits, Index>(problem, operands);
    });
  });
}

}  // namespace warpline::cpu
