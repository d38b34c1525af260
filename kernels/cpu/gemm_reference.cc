// Gemm by the three loops of its definition, in double.
#include <cstdint>

#include "kernels/cpu/float16.h"
#include "kernels/cpu/launchers.h"

namespace warpline::cpu {
namespace {

template <typename T>
void Gemm(const GemmProblem& p, const Operands& operands) {
  const auto* a = static_cast<const T*>(operands.in[0]);
  const auto* b = static_cast<const T*>(operands.in[1]);
  const auto* c = static_cast<const T*>(operands.in[2]);
  auto* d = static_cast<T*>(operands.out);
  constexpr bool kF64 = std::is_same_v<T, double>;
  const double alpha = kF64 ? operands.scalars->alpha_f64 : operands.scalars->alpha_f32;
  const double beta = kF64 ? operands.scalars->beta_f64 : operands.scalars->beta_f32;
  const bool reads_c = p.has_c && beta != 0;

  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < p.k; ++l) {
          const T a_il = p.trans_a ? a[l * p.lda + i] : a[i * p.lda + l];
          const T b_lj = p.trans_b ? b[j * p.ldb + l] : b[l * p.ldb + j];
          sum += static_cast<double>(a_il) * static_cast<double>(b_lj);
        }
        double result = p.k == 0 ? 0 : alpha * sum;
        if (reads_c) result += beta * static_cast<double>(c[i * p.ldc + j]);
        d[i * p.n + j] = RoundTo<T>(result);
      }
    }
    a += (p.trans_a ? p.k : p.m) * p.lda;
    b += (p.trans_b ? p.n : p.k) * p.ldb;
    if (reads_c) c += p.m * p.ldc;
    d += p.m * p.n;
  }
}

}  // namespace

void GemmReference(const GemmProblem& problem, const Operands& operands) {
  VisitDType(problem.dtype, [&]<typename T>(std::type_identity<T>) {
    if constexpr (!std::is_integral_v<T>) Gemm<T>(problem, operands);
  });
}

}  // namespace warpline::cpu
