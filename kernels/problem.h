// What is to be computed, apart from how and where: one plain struct an operation. Problems are valid by
// construction (server/rpc/convert checks requests); kernels do not check them again.
#ifndef WARPLINE_KERNELS_PROBLEM_H_
#define WARPLINE_KERNELS_PROBLEM_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include "kernels/dtype.h"
#include "kernels/shape.h"

namespace warpline {

enum class Op : std::uint8_t { kTranspose, kGemm, kReduce };
inline constexpr std::array kAllOps = {Op::kTranspose, Op::kGemm, Op::kReduce};
std::string_view Name(Op op);

// y[i0, i1, ...] = x[...] with y's axis i being x's axis perm[i].
struct TransposeProblem {
  DType dtype = DType::kF32;
  Shape shape;  // of x
  std::array<std::int8_t, kMaxRank> perm{};

  Shape OutputShape() const;
};

enum class Precision : std::uint8_t { kIeee, kTf32 };

// D = alpha * op(A) * op(B) + beta * C for `batch` matrices, all row-major. A is m x k (k x m if trans_a)
// with lda elements between rows, B is k x n (n x k if trans_b), C and D are m x n; D is dense (ldd = n).
// Matrix i of an operand starts i * rows * ld elements after the first. alpha and beta are not here but in
// GemmScalars: a change of value needs no new graph. C is read only if has_c; without it beta is 0.
struct GemmProblem {
  DType dtype = DType::kF32;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool trans_a = false, trans_b = false, has_c = false;
  Precision precision = Precision::kIeee;
};

// Both widths, so that a kernel reads the one it computes in; this layout is copied to the device.
struct GemmScalars {
  float alpha_f32 = 1, beta_f32 = 0;
  double alpha_f64 = 1, beta_f64 = 0;
};

enum class ReduceOp : std::uint8_t { kSum, kMin, kMax, kMean, kArgmax };
inline constexpr std::array kAllReduceOps = {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kMean,
                                             ReduceOp::kArgmax};
std::string_view Name(ReduceOp op);
DType OutputDType(ReduceOp op, DType input);

// Reduces the axes whose bit is set in axes_mask. For argmax the index is row-major over the reduced axes.
// The number of reduced elements may be 0 for sum (0) and mean (NaN) only, or when the result is empty.
struct ReduceProblem {
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kF32;
  Shape shape;  // of x
  std::uint32_t axes_mask = 0;

  bool IsReduced(int axis) const { return (axes_mask >> axis) & 1u; }
  Shape OutputShape(bool keepdims) const;
  std::int64_t ReducedCount() const;  // elements that go into one result
};

using Problem = std::variant<TransposeProblem, GemmProblem, ReduceProblem>;

Op OpOf(const Problem& problem);
DType DTypeOf(const Problem& problem);

// The least that must move through device memory (each operand once), in bytes, and the arithmetic, in
// floating-point (or integer) operations: the numerators of achieved bandwidth and FLOP/s.
double BytesOf(const Problem& problem);
double FlopsOf(const Problem& problem);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_PROBLEM_H_
