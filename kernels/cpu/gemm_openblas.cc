// Gemm by OpenBLAS, on the calling thread only.
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cpu/gemm_types.h"
#include "kernels/cpu/launchers.h"
#include "kernels/cpu/looks.h"

namespace warpline::cpu {
namespace {

// A block of D, and the operands from which it is computed.
template <typename T>
struct Block {
  const T* a = nullptr;
  const T* b = nullptr;
  T* d = nullptr;
  std::int64_t m = 0, n = 0, k = 0;
};

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

// Overloads for each type, used by the template below.
void Call(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, const GemmProblem& p, float alpha, float beta,
          const Block<float>& x) {
  cblas_sgemm(CblasRowMajor, ta, tb, x.m, x.n, x.k, alpha, x.a, p.lda, x.b, p.ldb, beta, x.d, p.n);
}
void Call(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, const GemmProblem& p, double alpha, double beta,
          const Block<double>& x) {
  cblas_dgemm(CblasRowMajor, ta, tb, x.m, x.n, x.k, alpha, x.a, p.lda, x.b, p.ldb, beta, x.d, p.n);
}
void Call(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, const GemmProblem& p, Complex64 alpha, Complex64 beta,
          const Block<Complex64>& x) {
  cblas_cgemm(CblasRowMajor, ta, tb, x.m, x.n, x.k, &alpha, x.a, p.lda, x.b, p.ldb, &beta, x.d, p.n);
}
void Call(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, const GemmProblem& p, Complex128 alpha, Complex128 beta,
          const Block<Complex128>& x) {
  cblas_zgemm(CblasRowMajor, ta, tb, x.m, x.n, x.k, &alpha, x.a, p.lda, x.b, p.ldb, &beta, x.d, p.n);
}

// OpenBLAS cannot be stopped, so larger products are computed in blocks of this many operations on f32: about
// 20 ms at 25 GFLOP/s, the speed of one core of a small server.
constexpr double kBlockFlops = 5e8;
constexpr std::int64_t kBlockSide = 32;  // smaller blocks spend most of the time copying A and B

// The part of a product that one call computes.
struct BlockSize {
  std::int64_t m = 0, n = 0, k = 0;
};
template <typename T>
BlockSize BlockSizeOf(const GemmProblem& p) {
  constexpr double kCost =
      (kIsComplex<T> ? 4 : 1) * (std::is_same_v<T, float> || std::is_same_v<T, Complex64> ? 1 : 2);
  constexpr auto kMaxK = static_cast<std::int64_t>(kBlockFlops / (2 * kCost * kBlockSide * kBlockSide));
  const std::int64_t k = std::min(p.k, kMaxK);
  const double flops = 2 * kCost * static_cast<double>(k);  // per element of D
  if (flops * static_cast<double>(p.m) * static_cast<double>(p.n) <= kBlockFlops) return {p.m, p.n, k};
  const auto whole = static_cast<std::int64_t>(std::sqrt(kBlockFlops / flops)) / kBlockSide * kBlockSide;
  const std::int64_t side = std::max(whole, kBlockSide);
  return {std::min(p.m, side), std::min(p.n, side), k};
}

// Adds the bias and applies the activation, for which BLAS has no arguments. Returns false if it was stopped.
template <typename T>
bool AddBiasAndActivate(Looks& looks, const GemmProblem& p, const T* bias, T* d) {
  const std::int64_t work = p.activation == Activation::kGelu ? 16 : 1;
  for (std::int64_t i = 0; i < p.m; ++i, d += p.n) {
    const bool ends = InPieces(looks, p.n, work, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t j = begin; j < end; ++j) {
        d[j] = Activate(p.activation, bias == nullptr ? d[j] : d[j] + bias[j]);
      }
    });
    if (!ends) return false;
  }
  return true;
}

// Sets D = alpha * op(A) * op(B) + beta * D for one matrix, in blocks. Returns false if it was cancelled.
template <typename T>
bool MultiplyInBlocks(Looks& looks, const GemmProblem& p, const Factors<T>& factors, const T* a, const T* b,
                      T* d) {
  const CBLAS_TRANSPOSE ta = p.trans_a ? CblasTrans : CblasNoTrans;
  const CBLAS_TRANSPOSE tb = p.trans_b ? CblasTrans : CblasNoTrans;
  const BlockSize size = BlockSizeOf<T>(p);
  for (std::int64_t col = 0; col < p.n; col += size.n) {
    for (std::int64_t row = 0; row < p.m; row += size.m) {
      for (std::int64_t l = 0; l < p.k; l += size.k) {
        const Block<T> block = {.a = a + (p.trans_a ? l * p.lda + row : row * p.lda + l),
                                .b = b + (p.trans_b ? col * p.ldb + l : l * p.ldb + col),
                                .d = d + row * p.n + col,
                                .m = std::min(size.m, p.m - row),
                                .n = std::min(size.n, p.n - col),
                                .k = std::min(size.k, p.k - l)};
        Call(ta, tb, p, factors.alpha, l == 0 ? factors.beta : T{1}, block);
        constexpr std::int64_t kFlops = 16;  // per nanosecond
        if (looks.Stop(2 * block.m * block.n * block.k / kFlops + 1)) return false;
      }
    }
  }
  return true;
}

template <typename T>
void Gemm(const GemmProblem& p, const Operands& operands) {
  Factors<T> factors(*operands.scalars);
  auto* d = static_cast<T*>(operands.out);
  const auto* bias = p.has_bias ? static_cast<const T*>(operands.in[p.BiasIndex()]) : nullptr;
  const bool reads_c = p.has_c && factors.beta != T{0};
  if (!reads_c) factors.beta = 0;  // BLAS then overwrites D without reading it

  Looks looks(operands.interest);
  const std::int64_t count = p.batch.Count();
  for (std::int64_t matrix = 0; matrix < count; ++matrix, d += p.m * p.n) {
    const GemmBatch::Matrices at = p.batch.At(matrix);
    if (reads_c) {  // BLAS adds in place
      const auto* c = static_cast<const T*>(operands.in[2]) + at.c * p.StrideC();
      for (std::int64_t i = 0; i < p.m; ++i) {
        const auto row = p.n * static_cast<std::int64_t>(sizeof(T));
        if (!CopyInPieces(looks, d + i * p.n, c + i * p.ldc, row)) return;
      }
    }
    if (p.k > 0) {
      const auto* a = static_cast<const T*>(operands.in[0]) + at.a * p.StrideA();
      const auto* b = static_cast<const T*>(operands.in[1]) + at.b * p.StrideB();
      if (!MultiplyInBlocks(looks, p, factors, a, b, d)) return;
    } else {  // operands without elements may have leading dimensions that BLAS refuses
      const bool ends = InPieces(looks, p.m * p.n, 1, [&](std::int64_t begin, std::int64_t end) {
        std::for_each(d + begin, d + end, [&](T& value) { value = reads_c ? factors.beta * value : T{0}; });
      });
      if (!ends) return;
    }
    if constexpr (!kIsComplex<T>) {
      const bool finishes = bias != nullptr || p.activation != Activation::kNone;
      if (finishes && !AddBiasAndActivate(looks, p, bias, d)) return;
    }
  }
}

}  // namespace

bool GemmOpenblasSupports(const GemmProblem& problem, const DeviceTraits&) {
  const std::int64_t largest = std::max({problem.m, problem.n, problem.k, problem.lda, problem.ldb});
  return largest <= std::numeric_limits<blasint>::max();
}

void GemmOpenblas(const GemmProblem& problem, const Operands& operands) {
  if (problem.m == 0 || problem.n == 0) return;
  // Otherwise OpenBLAS would start a thread per core for every lane. The setting applies to the whole
  // process.
  static const bool single_threaded = (openblas_set_num_threads(1), true);
  (void)single_threaded;
  switch (problem.dtype) {
    case DType::kF64:
      return Gemm<double>(problem, operands);
    case DType::kC64:
      return Gemm<Complex64>(problem, operands);
    case DType::kC128:
      return Gemm<Complex128>(problem, operands);
    default:
      return Gemm<float>(problem, operands);
  }
}

}  // namespace warpline::cpu
