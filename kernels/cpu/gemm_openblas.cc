// Gemm by OpenBLAS, on the calling thread only.
#include <cblas.h>

#include <algorithm>
#include <cstdint>
#include <limits>

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

template <typename T>
void Gemm(const GemmProblem& p, const Operands& operands, T alpha, T beta) {
  const auto* a = static_cast<const T*>(operands.in[0]);
  const auto* b = static_cast<const T*>(operands.in[1]);
  const auto* c = static_cast<const T*>(operands.in[2]);
  auto* d = static_cast<T*>(operands.out);
  const CBLAS_TRANSPOSE ta = p.trans_a ? CblasTrans : CblasNoTrans;
  const CBLAS_TRANSPOSE tb = p.trans_b ? CblasTrans : CblasNoTrans;
  const bool reads_c = p.has_c && beta != 0;
  if (!reads_c) beta = 0;  // BLAS then overwrites D without reading it

  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    if (reads_c) {  // BLAS adds in place
      for (std::int64_t i = 0; i < p.m; ++i) std::copy_n(c + i * p.ldc, p.n, d + i * p.n);
      c += p.m * p.ldc;
    }
    if (p.k > 0) {
      Call(ta, tb, p, alpha, a, b, beta, d);
    } else {  // operands without elements may have leading dimensions that BLAS refuses
      std::for_each(d, d + p.m * p.n, [&](T& value) { value = reads_c ? beta * value : T{0}; });
    }
    a += (p.trans_a ? p.k : p.m) * p.lda;
    b += (p.trans_b ? p.n : p.k) * p.ldb;
    d += p.m * p.n;
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
  const GemmScalars& scalars = *operands.scalars;
  if (problem.dtype == DType::kF64) {
    Gemm<double>(problem, operands, scalars.alpha_f64, scalars.beta_f64);
  } else {
    Gemm<float>(problem, operands, scalars.alpha_f32, scalars.beta_f32);
  }
}

}  // namespace warpline::cpu
