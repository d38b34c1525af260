// Problems: what to compute, independent of how and where. Each operation has one plain struct. Requests are
// checked when they are converted (server/rpc/codec/convert), so all problems are valid. Kernels do not check
// them again.
#ifndef WARPLINE_KERNELS_PROBLEM_H_
#define WARPLINE_KERNELS_PROBLEM_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/gemm/batch.h"
#include "kernels/index_problems.h"
#include "kernels/map/operations.h"
#include "kernels/order_problems.h"
#include "kernels/shape.h"

namespace warpline {

enum class Op : std::uint8_t {
  kTranspose,
  kGemm,
  kReduce,
  kMap,
  kTake,
  kPut,
  kScan,
  kSort,
  kSearch,
  kCompress
};
inline constexpr std::array kAllOps = {Op::kTranspose, Op::kGemm, Op::kReduce, Op::kMap,    Op::kTake,
                                       Op::kPut,       Op::kScan, Op::kSort,   Op::kSearch, Op::kCompress};
std::string_view Name(Op op);

// y[i0, i1, ...] = x[...], where axis i of y is axis perm[i] of x.
struct TransposeProblem {
  DType dtype = DType::kF32;
  Shape shape;  // of x
  PerAxis<std::int8_t> perm{};
  std::int64_t row_stride = 0;  // of x, in elements; 0: dense

  Shape OutputShape() const;
  friend bool operator==(const TransposeProblem&, const TransposeProblem&) = default;
};

enum class Precision : std::uint8_t { kIeee, kTf32 };
enum class Activation : std::uint8_t { kNone, kRelu, kGelu };

// D = activation(alpha * op(A) * op(B) + beta * C + bias) for the matrices of `batch`, all row-major. A is m
// x k (k x m if trans_a) with lda elements between rows, B is k x n (n x k if trans_b), C and D are m x n; D
// is dense (ldd = n). Matrix i of an operand starts i * rows * ld elements after the first. The bias has n
// elements and is added to every row. alpha and beta are in StepScalars, so that new values need no new
// graph. C is read only if has_c; without it beta is 0. C and bias have the type of D.
struct GemmProblem {
  DType dtype = DType::kF32;
  std::optional<DType> out_dtype;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  GemmBatch batch;
  bool trans_a = false, trans_b = false, has_c = false, has_bias = false;
  Activation activation = Activation::kNone;
  Precision precision = Precision::kIeee;

  // Returns the element type of D.
  DType OutDType() const { return out_dtype.value_or(dtype == DType::kI8 ? DType::kI32 : dtype); }
  // Returns the index of the bias among the operands.
  int BiasIndex() const { return has_c ? 3 : 2; }
  // Returns the number of elements from one matrix of an operand to the next.
  std::int64_t StrideA() const { return (trans_a ? k : m) * lda; }
  std::int64_t StrideB() const { return (trans_b ? n : k) * ldb; }
  std::int64_t StrideC() const { return m * ldc; }
  friend bool operator==(const GemmProblem&, const GemmProblem&) = default;
};

// The scalars of a step in every width, so that each kernel reads the type that it computes in. This layout
// is copied to the device. A map has one StepScalars for each constant: alpha is the value, or the real part,
// and beta the imaginary part. The factors of a complex product are real. Together with the zero after it,
// each factor forms the complex number that the library reads.
struct StepScalars {
  float alpha_f32 = 1, zero_after_alpha_f32 = 0, beta_f32 = 0, zero_after_beta_f32 = 0;
  double alpha_f64 = 1, zero_after_alpha_f64 = 0, beta_f64 = 0, zero_after_beta_f64 = 0;
  std::int64_t alpha_i64 = 1, beta_i64 = 0;
};

enum class ReduceOp : std::uint8_t {
  kSum,
  kProd,
  kMin,
  kMax,
  kMean,
  kArgmin,
  kArgmax,
  kAny,
  kAll,
  kCountNonzero,
  kNorm1,
  kNorm2,
  kNormInf,
  kSumSq,
  kVar,
  kStd,
  kLogSumExp
};
inline constexpr std::array kAllReduceOps = {
    ReduceOp::kSum,    ReduceOp::kProd,     ReduceOp::kMin,     ReduceOp::kMax,   ReduceOp::kMean,
    ReduceOp::kArgmin, ReduceOp::kArgmax,   ReduceOp::kAny,     ReduceOp::kAll,   ReduceOp::kCountNonzero,
    ReduceOp::kNorm1,  ReduceOp::kNorm2,    ReduceOp::kNormInf, ReduceOp::kSumSq, ReduceOp::kVar,
    ReduceOp::kStd,    ReduceOp::kLogSumExp};
std::string_view Name(ReduceOp op);
// Returns the default element type of the result, if the request does not set one.
DType DefaultOutDType(ReduceOp op, DType input);
// Returns true if the operation is defined for zero elements.
bool HasIdentity(ReduceOp op);
constexpr bool IsArg(ReduceOp op) { return op == ReduceOp::kArgmin || op == ReduceOp::kArgmax; }

// Reduces the axes whose bits are set in axes_mask. For argmin and argmax the index is row-major over the
// reduced axes. The number of reduced elements may be 0 only if HasIdentity(op), or if the result is empty.
struct ReduceProblem {
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kF32;
  Shape shape;  // of x
  std::uint32_t axes_mask = 0;
  std::optional<DType> out_dtype;
  std::int64_t row_stride = 0;  // of x, in elements; 0: dense
  std::int32_t ddof = 0;        // of var and std

  bool IsReduced(int axis) const { return (axes_mask >> axis) & 1u; }
  DType OutDType() const { return out_dtype.value_or(DefaultOutDType(op, dtype)); }
  Shape OutputShape(bool keepdims) const;
  std::int64_t ReducedCount() const;  // elements reduced into one result
  friend bool operator==(const ReduceProblem&, const ReduceProblem&) = default;
};

inline constexpr int kMaxMapInputs = 32;
inline constexpr int kMaxMapNodes = 256;
inline constexpr int kMaxMapOutputs = 8;

// An input of a map. `strides` are its strides in elements along each axis of the result, 0 along axes where
// it is broadcast.
struct MapInput {
  DType dtype = DType::kF32;
  Strides strides{};

  friend bool operator==(const MapInput&, const MapInput&) = default;
};

// One operation of a map. Its operands are numbers of values: numbers below the count of inputs are inputs,
// the others are earlier nodes. The operand of a constant is the index of its StepScalars, that of an index
// its axis. `dtype` is the type of the result. All operands have the same type, except the first one of
// where, which is bool.
struct MapNode {
  MapOp op = MapOp::kConstant;
  DType dtype = DType::kF32;
  std::array<std::int16_t, 3> operands{};

  friend bool operator==(const MapNode&, const MapNode&) = default;
};

// An elementwise expression. The last node is a result; other nodes may be results too. Each node rounds to
// its type. Strides may be negative.
struct MapProblem {
  DType dtype = DType::kF32;  // of the first input; of the result if there is none
  Shape shape;
  std::vector<MapInput> inputs;       // at most kMaxMapInputs
  std::vector<MapNode> nodes;         // 1 to kMaxMapNodes
  std::vector<std::int16_t> further;  // nodes that are results in addition to the last one
  // Strides of the result. Without them, the result is dense. If there are several results, they are always
  // dense.
  std::optional<Strides> out_strides;

  DType OutDType() const { return nodes.back().dtype; }
  // Results are numbered: 0 is the last node, and the further ones follow.
  int ResultCount() const { return 1 + static_cast<int>(further.size()); }
  std::size_t ResultNode(int result) const {
    return result == 0 ? nodes.size() - 1
                       : static_cast<std::size_t>(further[static_cast<std::size_t>(result - 1)]);
  }
  DType ResultDType(int result) const { return nodes[ResultNode(result)].dtype; }
  Strides OutStrides() const { return out_strides.value_or(RowMajorStrides(shape)); }
  int ConstantCount() const;
  friend bool operator==(const MapProblem&, const MapProblem&) = default;
};

using Problem = std::variant<TransposeProblem, GemmProblem, ReduceProblem, MapProblem, TakeProblem,
                             PutProblem, ScanProblem, SortProblem, SearchProblem, CompressProblem>;

Op OpOf(const Problem& problem);
DType DTypeOf(const Problem& problem);  // of the inputs
// Returns how many StepScalars the problem's kernels read.
int ScalarCount(const Problem& problem);

// The minimum bytes that must move through device memory (each operand once), and the number of
// floating-point (or integer) operations. They are the numerators of achieved bandwidth and FLOP/s.
double BytesOf(const Problem& problem);
double FlopsOf(const Problem& problem);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_PROBLEM_H_
