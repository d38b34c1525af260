#include "kernels/problem.h"

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
  }
  return "?";
}

std::string_view Name(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kMean:
      return "mean";
    case ReduceOp::kArgmax:
      return "argmax";
  }
  return "?";
}

DType OutputDType(ReduceOp op, DType input) {
  if (op == ReduceOp::kArgmax) return DType::kI64;
  if (input == DType::kI32 && op == ReduceOp::kSum) return DType::kI64;
  if (input == DType::kI32 && op == ReduceOp::kMean) return DType::kF64;
  return input;
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

Op OpOf(const Problem& problem) { return static_cast<Op>(problem.index()); }

DType DTypeOf(const Problem& problem) {
  return std::visit([](const auto& p) { return p.dtype; }, problem);
}

double BytesOf(const Problem& problem) {
  return std::visit(
      Overloaded{[](const TransposeProblem& p) { return 2 * Bytes(p.shape, p.dtype); },
                 [](const GemmProblem& p) {
                   const double elements = static_cast<double>(p.m) * p.k + static_cast<double>(p.k) * p.n +
                                           static_cast<double>(p.m) * p.n * (p.has_c ? 2 : 1);
                   return static_cast<double>(p.batch) * elements * static_cast<double>(SizeOf(p.dtype));
                 },
                 [](const ReduceProblem& p) {
                   return Bytes(p.shape, p.dtype) + Bytes(p.OutputShape(false), OutputDType(p.op, p.dtype));
                 }},
      problem);
}

double FlopsOf(const Problem& problem) {
  return std::visit(Overloaded{[](const TransposeProblem&) { return 0.0; },
                               [](const GemmProblem& p) {
                                 return 2.0 * static_cast<double>(p.batch) * static_cast<double>(p.m) * p.n *
                                        p.k;
                               },
                               [](const ReduceProblem& p) { return static_cast<double>(p.shape.Count()); }},
                    problem);
}

}  // namespace warpline
