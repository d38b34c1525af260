// Reduce by the plainest loops, in double or 64-bit integers, pairwise.
#include <cstdint>

#include "kernels/cpu/launchers.h"
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
  std::int64_t at = 0;  // in y
  kept.ForEach([&](std::int64_t kept_offset, std::int64_t) {
    Pairwise<Monoid> acc;
    reduced.ForEach([&](std::int64_t offset, std::int64_t) {
      acc.Add(LoadReal<typename Monoid::Value>(problem.dtype, operands.in[0], kept_offset + offset));
    });
    Monoid::Finish(acc.Total(), finish,
                   [&](auto value) { StoreReal(finish.out_dtype, operands.out, at, value); });
    ++at;
  });
}

}  // namespace

void ReduceReference(const ReduceProblem& problem, const Operands& operands) {
  VisitWideMonoid(problem,
                  [&]<typename Monoid>(std::type_identity<Monoid>) { Reduce<Monoid>(problem, operands); });
}

}  // namespace warpline::cpu
