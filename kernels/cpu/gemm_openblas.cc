// Gemm by OpenBLAS, on the calling thread only.
#include <cblas.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>

#include "kernels/cpu/gemm_types.h"
#include "kernels/cpu/launchers.h"

namespace warpline::cpu {
namespace {

// One overload per type, for the template below.
void Call(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, const GemmProblem& p, float alpha, const float* a,
          const float* b, float beta, float* d) {
  cblas_sgemm(CblasRowMajor, ta, tb, p.m, p.n, p.k, alpha, a, p.lda, b, p.ldb, beta, d, p.n);
}

void Call(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, const GemmProblem& p, double alpha, const double* a,
          const double* b, double beta, double* d) {
  cblas_dgemm(CblasRowMajor, ta, tb, p.m, p.n, p.k, alpha, a, p.lda, b, p.ldb, beta, d, p.n);
}

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

void Call(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, const GemmProblem& p, Complex64 alpha, const Complex64* a,
          const Complex64* b, Complex64 beta, Complex64* d) {
  cblas_cgemm(CblasRowMajor, ta, tb, p.m, p.n, p.k, &alpha, a, p.lda, b, p.ldb, &beta, d, p.n);
}

void Call(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, const GemmProblem& p, Complex128 alpha, const Complex128* a,
          const Complex128* b, Complex128 beta, Complex128* d) {
  cblas_zgemm(CblasRowMajor, ta, tb, p.m, p.n, p.k, &alpha, a, p.lda, b, p.ldb, &beta, d, p.n);
}

// Adds the bias and applies the activation: BLAS has no argument for either.
template <typename T>
void AddBiasAndActivate(const GemmProblem& p, const T* bias, T* d) {
  for (std::int64_t i = 0; i < p.m; ++i, d += p.n) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      d[j] = Activate(p.activation, bias == nullptr ? d[j] : d[j] + bias[j]);
    }
  }
}

template <typename T>
void Gemm(const GemmProblem& p, const Operands& operands) {
  Factors<T> factors(*operands.scalars);
  auto* d = static_cast<T*>(operands.out);
  const auto* bias = p.has_bias ? static_cast<const T*>(operands.in[p.BiasIndex()]) : nullptr;
  const CBLAS_TRANSPOSE ta = p.trans_a ? CblasTrans : CblasNoTrans;
  const CBLAS_TRANSPOSE tb = p.trans_b ? CblasTrans : CblasNoTrans;
  const bool reads_c = p.has_c && factors.beta != T{0};
  if (!reads_c) factors.beta = 0;  // BLAS then overwrites D without reading it

  const std::int64_t count = p.batch.Count();
  for (std::int64_t matrix = 0; matrix < count; ++matrix, d += p.m * p.n) {
    const GemmBatch::Matrices at = p.batch.At(matrix);
    if (reads_c) {  // BLAS adds in place
      const auto* c = static_cast<const T*>(operands.in[2]) + at.c * p.StrideC();
      for (std::int64_t i = 0; i < p.m; ++i) std::copy_n(c + i * p.ldc, p.n, d + i * p.n);
    }
    if (p.k > 0) {
      Call(ta, tb, p, factors.alpha, static_cast<const T*>(operands.in[0]) + at.a * p.StrideA(),
           static_cast<const T*>(operands.in[1]) + at.b * p.StrideB(), factors.beta, d);
    } else {  // operands without elements may have leading dimensions that BLAS refuses
      std::for_each(d, d + p.m * p.n, [&](T& value) { value = reads_c ? factors.beta * value : T{0}; });
    }
    if constexpr (!kIsComplex<T>) {
      if (bias != nullptr || p.activation != Activation::kNone) AddBiasAndActivate(p, bias, d);
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
  // OpenBLAS would start a thread a core for every lane. The setting is the process's.
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
