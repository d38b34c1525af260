// Gemm by the three loops of its definition, in double. Integers are computed modulo 2^bits.
#include <complex>
#include <cstdint>

#include "kernels/cpu/gemm_types.h"
#include "kernels/cpu/launchers.h"
#include "kernels/cpu/looks.h"

namespace warpline::cpu {
namespace {

template <typename T, typename Out>
void Gemm(const GemmProblem& p, const Operands& operands) {
  using V = std::conditional_t<std::is_integral_v<T>, Modular<T>,
                               std::conditional_t<kIsComplex<T>, std::complex<double>, double>>;
  Factors<V> factors(*operands.scalars);
  if constexpr (!std::is_integral_v<T> && !std::is_same_v<T, V>) {
    const Factors<float> narrow(*operands.scalars);  // rounded to f32, as the API says
    factors.alpha = narrow.alpha;
    factors.beta = narrow.beta;
  }
  const bool reads_c = p.has_c && factors.beta != V{0};
  const auto* bias = p.has_bias ? static_cast<const Out*>(operands.in[p.BiasIndex()]) : nullptr;
  auto* d = static_cast<Out*>(operands.out);
  Looks looks(operands.interest);
  const std::int64_t count = p.m == 0 || p.n == 0 ? 0 : p.batch.Count();
  for (std::int64_t matrix = 0; matrix < count; ++matrix) {
    const GemmBatch::Matrices at = p.batch.At(matrix);
    const auto* a = static_cast<const T*>(operands.in[0]) + at.a * p.StrideA();
    const auto* b = static_cast<const T*>(operands.in[1]) + at.b * p.StrideB();
    const auto* c = reads_c ? static_cast<const Out*>(operands.in[2]) + at.c * p.StrideC() : nullptr;
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        V sum = 0;
        const bool ends = InPieces(looks, p.k, 2, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t l = begin; l < end; ++l) {
            const T a_il = p.trans_a ? a[l * p.lda + i] : a[i * p.lda + l];
            const T b_lj = p.trans_b ? b[j * p.ldb + l] : b[l * p.ldb + j];
            sum += static_cast<V>(a_il) * static_cast<V>(b_lj);
          }
        });
        if (!ends || looks.Stop(8)) return;
        *d++ = FinishElement(p, factors, sum, c == nullptr ? nullptr : c + i * p.ldc + j,
                             bias == nullptr ? nullptr : bias + j);
      }
    }
  }
}

}  // namespace

void GemmReference(const GemmProblem& problem, const Operands& operands) {
  VisitGemmTypes(problem, [&]<typename T, typename Out>(std::type_identity<T>, std::type_identity<Out>) {
    Gemm<T, Out>(problem, operands);
  });
}

}  // namespace warpline::cpu
