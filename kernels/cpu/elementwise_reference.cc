// Casts, products with a factor and sums, element after element.
#include <cstdint>

#include "kernels/cpu/launchers.h"
#include "kernels/cpu/real.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/walk.h"

namespace warpline::cpu {
namespace {

template <typename V>
void Run(const ElementwiseProblem& problem, const Operands& operands) {
  const ElementwiseWalk walk = ElementwiseWalk::Of(problem);
  const V factor = operands.scalars == nullptr ? V{1} : FactorOf<V>(*operands.scalars);
  for (std::int64_t i = 0; i < walk.count; ++i) {
    const ElementwiseSource source = walk.At(i);
    V value = LoadReal<V>(problem.dtype, operands.in[0], source.x);
    if (problem.op == ElementwiseOp::kScale) value *= factor;
    if (problem.op == ElementwiseOp::kAdd) value += LoadReal<V>(problem.dtype, operands.in[1], source.y);
    StoreReal(problem.out_dtype, operands.out, i, value);
  }
}

}  // namespace

void ElementwiseReference(const ElementwiseProblem& problem, const Operands& operands) {
  VisitArithmetic(problem, [&]<typename V>(std::type_identity<V>) { Run<V>(problem, operands); });
}

}  // namespace warpline::cpu
