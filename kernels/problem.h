// Problems: what to compute, apart from how and where. Each operation has one plain struct. Problems are
// valid by construction (server/rpc/codec/convert checks requests); kernels do not check them again.
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

// y[i0, i1, ...] = x[...] with y's axis i being x's axis perm[i].
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

// D = activation(alpha * op(A) * op(B) + beta * C + bias) for the matrices of `batch`, all row-major. A is
// m x k (k x m if trans_a) with lda elements between rows, B is k x n (n x k if trans_b), C and D are m x n;
// D is dense (ldd = n). Matrix i of an operand starts i * rows * ld elements after the first. The bias has n
// elements and is added to every row. alpha and beta are not here but in StepScalars: a change of value needs
// no new graph. C is read only if has_c; without it beta is 0. C and bias have the type of D.
struct GemmProblem {
  DType dtype = DType::kF32;
  std::optional<DType> out_dtype;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  GemmBatch batch;
  bool trans_a = false, trans_b = false, has_c = false, has_bias = false;
  Activation activation = Activation::kNone;
  Precision precision = Precision::kIeee;

  // The element type of D.
  DType OutDType() const { return out_dtype.value_or(dtype == DType::kI8 ? DType::kI32 : dtype); }
  // Place of the bias among the operands.
  int BiasIndex() const { return has_c ? 3 : 2; }
  // Elements from one matrix of an operand to the next.
  std::int64_t StrideA() const { return (trans_a ? k : m) * lda; }
  std::int64_t StrideB() const { return (trans_b ? n : k) * ldb; }
  std::int64_t StrideC() const { return m * ldc; }
  friend bool operator==(const GemmProblem&, const GemmProblem&) = default;
};

// In every width, so that a kernel reads the one it computes in; this layout is copied to the device. A map
// has one for each constant, of which alpha is the value, or the real part, and beta the imaginary part. The
// factors of a complex product are real: each with the zero behind it is the complex number that the library
// reads.
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
// The element type of the result unless the request says otherwise.
DType DefaultOutDType(ReduceOp op, DType input);
// True if the operation has a value over no elements.
bool HasIdentity(ReduceOp op);
constexpr bool IsArg(ReduceOp op) { return op == ReduceOp::kArgmin || op == ReduceOp::kArgmax; }

// Reduces the axes whose bit is set in axes_mask. For argmin and argmax the index is row-major over the
// reduced axes. The number of reduced elements may be 0 only if HasIdentity(op), or when the result is empty.
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
  std::int64_t ReducedCount() const;  // elements that go into one result
  friend bool operator==(const ReduceProblem&, const ReduceProblem&) = default;
};

inline constexpr int kMaxMapInputs = 32;
inline constexpr int kMaxMapNodes = 256;
inline constexpr int kMaxMapOutputs = 8;

// An input of a map. Along each axis of the result, neighbours are so many elements apart in it: 0 where it
// is broadcast.
struct MapInput {
  DType dtype = DType::kF32;
  Strides strides{};

  friend bool operator==(const MapInput&, const MapInput&) = default;
};

// One operation of a map. Its operands are values: numbers below the count of inputs are inputs, and the
// others are earlier nodes. A constant has the number of its StepScalars as its operand, and an index the
// number of its axis. `dtype` is that of its result. All operands have one type, but for the first of where,
// which is bool.
struct MapNode {
  MapOp op = MapOp::kConstant;
  DType dtype = DType::kF32;
  std::array<std::int16_t, 3> operands{};

  friend bool operator==(const MapNode&, const MapNode&) = default;
};

// An elementwise expression. The last node is the result; other nodes may be results, too. Each node rounds
// to its type. Strides may be negative.
struct MapProblem {
  DType dtype = DType::kF32;  // of the first input; of the result if there is none
  Shape shape;
  std::vector<MapInput> inputs;       // at most kMaxMapInputs
  std::vector<MapNode> nodes;         // 1 to kMaxMapNodes
  std::vector<std::int16_t> further;  // nodes that are results beside the last one
  // The result is dense if there are none. Several results always are.
  std::optional<Strides> out_strides;

  DType OutDType() const { return nodes.back().dtype; }
  // Results have numbers: 0 is that of the last node, and the further ones follow.
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
// The number of StepScalars that the problem's kernels read.
int ScalarCount(const Problem& problem);

// The least that must move through device memory (each operand once), in bytes, and the arithmetic, in
// floating-point (or integer) operations: the numerators of achieved bandwidth and FLOP/s.
double BytesOf(const Problem& problem);
double FlopsOf(const Problem& problem);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_PROBLEM_H_
