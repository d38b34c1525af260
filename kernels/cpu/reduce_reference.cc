// Reduce by the simplest loops, in double or 64-bit integers, pairwise.
#include <cstdint>

#include "kernels/cpu/launchers.h"
#include "kernels/cpu/looks.h"
#include "kernels/cpu/real.h"
#include "kernels/cpu/strided.h"
#include "kernels/reduce/pairwise.h"
#include "kernels/reduce/wide.h"

namespace warpline::cpu {
namespace {

template <typename Monoid>
void Reduce(const ReduceProblem& problem, const Operands& operands) {
  const Strides strides = RowMajorStrides(problem.shape, problem.row_stride);
  AxisList kept;
  AxisList reduced;
  for (int i = 0; i < problem.shape.rank; ++i) {
    (problem.IsReduced(i) ? reduced : kept).Append({problem.shape[i], strides[i], 0});
  }
  const ReduceFinish finish = FinishOf(problem);
  const Axis run = reduced.RemoveLast();
  Looks looks(operands.interest);
  std::int64_t at = 0;  // in y
  kept.ForEach([&](std::int64_t kept_offset, std::int64_t) {
    Pairwise<Monoid> acc;
    const bool ends = reduced.ForEach([&](std::int64_t offset, std::int64_t) {
      return InPieces(looks, run.size, 4, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          acc.Add(LoadReal<typename Monoid::Value>(problem.dtype, operands.in[0],
                                                   kept_offset + offset + i * run.x_stride));
        }
      });
    });
    if (!ends || looks.Stop(8)) return false;
    Monoid::Finish(acc.Total(), finish,
                   [&](auto value) { StoreReal(finish.out_dtype, operands.out, at, value); });
    ++at;
    return true;
  });
}

}  // namespace

void ReduceReference(const ReduceProblem& problem, const Operands& operands) {
  VisitWideMonoid(problem,
                  [&]<typename Monoid>(std::type_identity<Monoid>) { Reduce<Monoid>(problem, operands); });
}

}  // namespace warpline::cpu
