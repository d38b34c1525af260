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
  const int inner = walk.rank - 1;  // the axis along which nothing has to be divided
  const std::int64_t row = inner < 0 ? 1 : walk.dims[inner];
  const std::int64_t x_step = inner < 0 ? 0 : walk.x[inner], y_step = inner < 0 ? 0 : walk.y[inner];
  for (std::int64_t first = 0; first < walk.count; first += row) {
    const ElementwiseSource source = walk.At(first);
    for (std::int64_t i = 0; i < row; ++i) {
      V value = LoadReal<V>(problem.dtype, operands.in[0], source.x + i * x_step);
      if (problem.op == ElementwiseOp::kScale) value *= factor;
      if (problem.op == ElementwiseOp::kAdd) {
        value += LoadReal<V>(problem.dtype, operands.in[1], source.y + i * y_step);
      }
      StoreReal(problem.out_dtype, operands.out, first + i, value);
    }
  }
}

}  // namespace

void ElementwiseReference(const ElementwiseProblem& problem, const Operands& operands) {
  VisitArithmetic(problem, [&]<typename V>(std::type_identity<V>) { Run<V>(problem, operands); });
}

}  // namespace warpline::cpu
