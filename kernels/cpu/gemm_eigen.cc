// Gemm by Eigen: blocks of A and B are widened into the workspace and multiplied there. The finished block is
// scaled and rounded once. So 16-bit types accumulate in f32, and integers modulo 2^32 or 2^64. Only the
// widening depends on transposition, leading dimension and element type.
#include <Eigen/Core>
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/gemm_types.h"
#include "kernels/cpu/launchers.h"
#include "kernels/cpu/looks.h"

namespace warpline::cpu {
namespace {

// The f32 blocks need 0.25 MiB (D), 0.5 MiB (A) and 0.5 MiB (B), about the size of a second-level cache. Each
// element of A is widened once per kBlockN columns of D, so this cost is negligible compared with 2 * kBlockN
// operations.
constexpr std::int64_t kBlockM = 256;
constexpr std::int64_t kBlockN = 256;
constexpr std::int64_t kBlockK = 512;
constexpr std::size_t kWorkspaceElements = kBlockM * kBlockK + kBlockK * kBlockN + kBlockM * kBlockN;

template <typename T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using Block = Eigen::Map<RowMajor<T>>;

// A view of op(X) from element (row, col) on. X is row-major with `ld` elements between rows.
template <typename T>
struct View {
  const T* data;
  std::int64_t ld;
  bool transposed;

  // block = op(X)[row.., col..]
  template <typename C>
  void Widen(std::int64_t row, std::int64_t col, Block<C> block) const {
    using Source = Eigen::Map<const RowMajor<T>, Eigen::Unaligned, Eigen::OuterStride<>>;
    if (transposed) {
      const Source source(data + col * ld + row, block.cols(), block.rows(), Eigen::OuterStride<>(ld));
      block = source.transpose().template cast<C>();
    } else {
      const Source source(data + row * ld + col, block.rows(), block.cols(), Eigen::OuterStride<>(ld));
      block = source.template cast<C>();
    }
  }
};

template <typename T, typename Out, typename C>
struct Matrices {
  View<T> a, b;
  const Out* c;     // null: C is not read
  const Out* bias;  // null: no bias
  Out* d;
  C* workspace;
};

// Computes one block of D: `m` x `n` elements from (row, col) on. Returns false if it was stopped.
template <typename T, typename Out, typename C>
bool ComputeBlock(Looks& looks, const GemmProblem& p, const Matrices<T, Out, C>& x, const Factors<C>& factors,
                  std::int64_t row, std::int64_t col, std::int64_t m, std::int64_t n) {
  C* const a_data = x.workspace;
  C* const b_data = a_data + kBlockM * kBlockK;
  Block<C> sum(b_data + kBlockK * kBlockN, m, n);
  sum.setZero();
  for (std::int64_t l = 0; l < p.k; l += kBlockK) {
    const std::int64_t k = std::min(kBlockK, p.k - l);
    Block<C> a(a_data, m, k);
    Block<C> b(b_data, k, n);
    x.a.Widen(row, l, a);
    x.b.Widen(l, col, b);
    sum.noalias() += a * b;
    constexpr std::int64_t kFlops = 8;  // per nanosecond
    if (looks.Stop(2 * m * n * k / kFlops)) return false;
  }
  const Out* bias = x.bias == nullptr ? nullptr : x.bias + col;
  for (std::int64_t i = 0; i < m; ++i) {
    const Out* c = x.c == nullptr ? nullptr : x.c + (row + i) * p.ldc + col;
    Out* d = x.d + (row + i) * p.n + col;
    for (std::int64_t j = 0; j < n; ++j) {
      d[j] = FinishElement<C, Out>(p, factors, sum(i, j), c == nullptr ? nullptr : c + j,
                                   bias == nullptr ? nullptr : bias + j);
    }
  }
  return !looks.Stop(8 * m * n);
}

template <typename T, typename Out>
void Gemm(const GemmProblem& p, const Operands& operands) {
  using C = std::conditional_t<std::is_integral_v<T>, Modular<T>, Compute<T>>;
  const Factors<C> factors(*operands.scalars);
  Matrices<T, Out, C> x = {};
  if (p.has_bias) x.bias = static_cast<const Out*>(operands.in[p.BiasIndex()]);
  x.d = static_cast<Out*>(operands.out);
  x.workspace = static_cast<C*>(operands.workspace);
  Looks looks(operands.interest);

  const std::int64_t count = p.m == 0 || p.n == 0 ? 0 : p.batch.Count();
  for (std::int64_t matrix = 0; matrix < count; ++matrix, x.d += p.m * p.n) {
    const GemmBatch::Matrices at = p.batch.At(matrix);
    x.a = {static_cast<const T*>(operands.in[0]) + at.a * p.StrideA(), p.lda, p.trans_a};
    x.b = {static_cast<const T*>(operands.in[1]) + at.b * p.StrideB(), p.ldb, p.trans_b};
    if (p.has_c && factors.beta != C{0}) x.c = static_cast<const Out*>(operands.in[2]) + at.c * p.StrideC();
    // Columns are the outer loop: every block of rows reads the same panel of B, which should stay in cache.
    for (std::int64_t col = 0; col < p.n; col += kBlockN) {
      for (std::int64_t row = 0; row < p.m; row += kBlockM) {
        if (!ComputeBlock(looks, p, x, factors, row, col, std::min(kBlockM, p.m - row),
                          std::min(kBlockN, p.n - col))) {
          return;
        }
      }
    }
  }
}

}  // namespace

std::size_t GemmEigenWorkspaceBytes(const GemmProblem& problem, const DeviceTraits&) {
  return kWorkspaceElements * std::max(SizeOf(problem.dtype), sizeof(float));
}

void GemmEigen(const GemmProblem& problem, const Operands& operands) {
  VisitGemmTypes(problem, [&]<typename T, typename Out>(std::type_identity<T>, std::type_identity<Out>) {
    Gemm<T, Out>(problem, operands);
  });
}

}  // namespace warpline::cpu
