#include "kernels/problem.h"

#include <algorithm>

namespace warpline {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

double Bytes(const Shape& shape, DType dtype) {
  return static_cast<double>(shape.Count()) * static_cast<double>(SizeOf(dtype));
}

}  // namespace

std::string_view Name(Op op) {
  switch (op) {
    case Op::kTranspose:
      return "transpose";
    case Op::kGemm:
      return "gemm";
    case Op::kReduce:
      return "reduce";
    case Op::kMap:
      return "map";
    case Op::kTake:
      return "take";
    case Op::kPut:
      return "put";
    case Op::kScan:
      return "scan";
    case Op::kSort:
      return "sort";
    case Op::kSearch:
      return "search";
    case Op::kCompress:
      return "compress";
  }
  return "?";
}

std::string_view Name(ReduceOp op) {
  static constexpr std::array<std::string_view, kAllReduceOps.size()> kNames = {
      "sum",           "prod",  "min",   "max",     "mean",  "argmin", "argmax", "any",      "all",
      "count_nonzero", "norm1", "norm2", "norminf", "sumsq", "var",    "std",    "logsumexp"};
  return kNames[static_cast<std::size_t>(op)];
}

DType DefaultOutDType(ReduceOp op, DType input) {
  switch (op) {
    case ReduceOp::kArgmin:
    case ReduceOp::kArgmax:
    case ReduceOp::kCountNonzero:
      return DType::kI64;
    case ReduceOp::kAny:
    case ReduceOp::kAll:
      return DType::kBool;
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return input;
    case ReduceOp::kSum:
    case ReduceOp::kProd:
    case ReduceOp::kSumSq:
      if (IsFloat(input)) return input;
      return IsUnsigned(input) ? DType::kU64 : DType::kI64;
    default:
      return IsFloat(input) ? input : DType::kF64;
  }
}

bool HasIdentity(ReduceOp op) {
  return op != ReduceOp::kMin && op != ReduceOp::kMax && op != ReduceOp::kNormInf && !IsArg(op);
}

Shape TransposeProblem::OutputShape() const {
  Shape out;
  for (int i = 0; i < shape.rank; ++i) out.Append(shape[perm[i]]);
  return out;
}

Shape ReduceProblem::OutputShape(bool keepdims) const {
  Shape out;
  for (int i = 0; i < shape.rank; ++i) {
    if (!IsReduced(i)) {
      out.Append(shape[i]);
    } else if (keepdims) {
      out.Append(1);
    }
  }
  return out;
}

std::int64_t ReduceProblem::ReducedCount() const {
  std::int64_t count = 1;
  for (int i = 0; i < shape.rank; ++i) {
    if (IsReduced(i)) count *= shape[i];
  }
  return count;
}

Op OpOf(const Problem& problem) {
  return std::visit(
      Overloaded{[](const TransposeProblem&) { return Op::kTranspose; },
                 [](const GemmProblem&) { return Op::kGemm; },
                 [](const ReduceProblem&) { return Op::kReduce; }, [](const MapProblem&) { return Op::kMap; },
                 [](const TakeProblem&) { return Op::kTake; }, [](const PutProblem&) { return Op::kPut; },
                 [](const ScanProblem&) { return Op::kScan; }, [](const SortProblem&) { return Op::kSort; },
                 [](const SearchProblem&) { return Op::kSearch; },
                 [](const CompressProblem&) { return Op::kCompress; }},
      problem);
}

DType DTypeOf(const Problem& problem) {
  return std::visit([](const auto& p) { return p.dtype; }, problem);
}

int MapProblem::ConstantCount() const {
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(),
                                        [](const MapNode& node) { return node.op == MapOp::kConstant; }));
}

int ScalarCount(const Problem& problem) {
  if (const auto* map = std::get_if<MapProblem>(&problem)) return map->ConstantCount();
  return std::holds_alternative<GemmProblem>(problem) ? 1 : 0;
}

namespace {

// Returns the bytes of an operand that is read with these strides. Broadcast elements count only once.
double StridedBytes(const Shape& shape, const Strides& strides, DType dtype) {
  double count = 1;
  for (int i = 0; i < shape.rank; ++i) {
    if (strides[i] != 0) count *= static_cast<double>(shape[i]);
  }
  return count * static_cast<double>(SizeOf(dtype));
}

double BytesMoved(const TransposeProblem& p) { return 2 * Bytes(p.shape, p.dtype); }

double BytesMoved(const GemmProblem& p) {
  // A broadcast operand is read once. Axes with nonzero strides give its number of matrices.
  double a = 1, b = 1, c = 1;
  for (int i = 0; i < p.batch.rank; ++i) {
    const auto size = static_cast<double>(p.batch.dims[i]);
    a *= p.batch.a[i] != 0 ? size : 1;
    b *= p.batch.b[i] != 0 ? size : 1;
    c *= p.batch.c[i] != 0 ? size : 1;
  }
  const auto in = static_cast<double>(SizeOf(p.dtype));
  const auto out = static_cast<double>(SizeOf(p.OutDType()));
  const double mn = static_cast<double>(p.m) * static_cast<double>(p.n);
  return a * static_cast<double>(p.m) * static_cast<double>(p.k) * in +
         b * static_cast<double>(p.k) * static_cast<double>(p.n) * in +
         mn * out * (static_cast<double>(p.batch.Count()) + (p.has_c ? c : 0)) +
         (p.has_bias ? static_cast<double>(p.n) * out : 0);
}

double BytesMoved(const ReduceProblem& p) {
  return Bytes(p.shape, p.dtype) + Bytes(p.OutputShape(false), p.OutDType());
}

double BytesMoved(const MapProblem& p) {
  double bytes = 0;
  for (int i = 0; i < p.ResultCount(); ++i) bytes += Bytes(p.shape, p.ResultDType(i));
  for (const MapInput& input : p.inputs) bytes += StridedBytes(p.shape, input.strides, input.dtype);
  return bytes;
}

double Bytes(std::int64_t count, DType dtype) {
  return static_cast<double>(count) * static_cast<double>(SizeOf(dtype));
}

double BytesMoved(const TakeProblem& p) {
  return 2 * Bytes(p.shape, p.dtype) + StridedBytes(p.shape, p.index_strides, p.index_dtype);
}

double BytesMoved(const PutProblem& p) {
  return 2 * Bytes(p.shape, p.dtype) + StridedBytes(p.index_shape, p.index_strides, p.index_dtype) +
         StridedBytes(p.index_shape, p.value_strides, p.dtype);
}

double BytesMoved(const ScanProblem& p) { return 2 * Bytes(p.outer * p.count * p.inner, p.dtype); }

double BytesMoved(const SortProblem& p) {
  const std::int64_t taken = p.rows * p.taken;
  return Bytes(p.rows * p.count, p.dtype) + (p.values ? Bytes(taken, p.dtype) : 0) +
         (p.indices ? Bytes(taken, DType::kI64) : 0);
}

double BytesMoved(const SearchProblem& p) {
  return Bytes(p.count + p.needles, p.dtype) + Bytes(p.needles, DType::kI64) +
         (p.has_sorter ? Bytes(p.count, p.sorter_dtype) : 0);
}

// Returns the bytes that move if half of the rows are taken.
double BytesMoved(const CompressProblem& p) {
  return Bytes(p.rows * p.width, p.dtype) + Bytes(p.rows, DType::kBool);
}

}  // namespace

double BytesOf(const Problem& problem) {
  return std::visit([](const auto& p) { return BytesMoved(p); }, problem);
}

double FlopsOf(const Problem& problem) {
  return std::visit(
      Overloaded{[](const TransposeProblem&) { return 0.0; },
                 [](const GemmProblem& p) {
                   const double each = IsComplex(p.dtype) ? 8 : 2;  // of one multiplication and one addition
                   return each * static_cast<double>(p.batch.Count()) * static_cast<double>(p.m) *
                          static_cast<double>(p.n) * static_cast<double>(p.k);
                 },
                 [](const ReduceProblem& p) { return static_cast<double>(p.shape.Count()); },
                 [](const TakeProblem&) { return 0.0; }, [](const PutProblem&) { return 0.0; },
                 [](const ScanProblem& p) { return static_cast<double>(p.outer * p.count * p.inner); },
                 [](const SortProblem&) { return 0.0; }, [](const SearchProblem&) { return 0.0; },
                 [](const CompressProblem&) { return 0.0; },
                 [](const MapProblem& p) {
                   const auto nodes = static_cast<double>(p.nodes.size()) - p.ConstantCount();
                   return nodes * static_cast<double>(p.shape.Count());
                 }},
      problem);
}

}  // namespace warpline
