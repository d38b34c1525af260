#include "kernels/bench/harness/expected.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/bench/harness/check.h"
#include "kernels/bench/harness/operand_slots.h"
#include "kernels/bench/harness/reference.h"
#include "kernels/map/pair.h"
#include "kernels/unit_roundoff.h"

namespace warpline::bench {
namespace {

// 16-bit elements are summed up in f32.
double AccumulatorRoundoff(DType dtype) { return UnitRoundoff(dtype == DType::kF64 ? dtype : DType::kF32); }

// Tolerance for a dot product of k pairs of standard normal numbers. A partial sum is about sqrt(k) large,
// and there are at most k additions. Rounding errors of either sign add up to about u k / 2. Tensor cores
// truncate instead of rounding, once per step of at most 16 products. That adds up to at most u k^1.5 / 8. A
// worst case is no help here: it is as large as the result.
double AbsoluteTolerance(const GemmProblem& problem) {
  if (problem.dtype == DType::kI8) return 0;
  const auto k = static_cast<double>(problem.k);
  const double u = AccumulatorRoundoff(problem.dtype);
  double tolerance = 16 * u * k;
  if (problem.dtype != DType::kF64) tolerance += u * k * std::sqrt(k) / 8;
  // Operands cut to 11 bits: independent errors of the products, of 2^-10 at most. Six standard deviations.
  if (problem.precision == Precision::kTf32) tolerance += 12 * 0x1p-10 * std::sqrt(k);
  // The library's gelu has the error of an approximated tanh.
  if (problem.activation == Activation::kGelu && problem.dtype != DType::kF64) {
    tolerance += 0x1p-10 * std::sqrt(k);
  }
  return tolerance;
}

// Tolerance for a reduction of n standard normal numbers. Sums are of the numbers, of their magnitudes (near
// 1) or of their squares (of variance 2), in chains of up to 2^16 additions. Indices and extremes are exact.
double AbsoluteTolerance(const ReduceProblem& problem) {
  if (!IsFloat(problem.dtype)) return 0;
  const auto n = static_cast<double>(problem.ReducedCount());
  const double chain = std::sqrt(std::min(n, 65536.0)), u = AccumulatorRoundoff(problem.dtype);
  switch (problem.op) {
    case ReduceOp::kSum:
      return 4 * u * std::sqrt(n) * chain;
    case ReduceOp::kMean:
      return 4 * u * chain / std::sqrt(n);
    default:
      return 0;
  }
}

// Beyond the rounding of the result.
double RelativeTolerance(const ReduceProblem& problem) {
  const double u = AccumulatorRoundoff(problem.dtype);
  const double chain = std::sqrt(std::min(static_cast<double>(problem.ReducedCount()), 65536.0));
  switch (problem.op) {
    case ReduceOp::kNorm1:
    case ReduceOp::kNorm2:
    case ReduceOp::kSumSq:
    case ReduceOp::kVar:
    case ReduceOp::kStd:
    case ReduceOp::kLogSumExp:
      // All terms have one sign. A sum grows by the size of its terms, and each addition errs by u / 2 of it.
      return 8 * u * chain;
    case ReduceOp::kProd:
      return u * static_cast<double>(problem.ReducedCount());
    default:
      return 0;
  }
}

}  // namespace

std::size_t Expected::Bytes(const Problem& problem) {
  if (std::holds_alternative<TransposeProblem>(problem)) return OutBytes(problem);
  const auto* reduce = std::get_if<ReduceProblem>(&problem);
  return static_cast<std::size_t>(OutCount(problem)) * sizeof(double) +
         (reduce != nullptr ? ReferenceScratchBytes(*reduce) : 0);
}

Expected::Expected(const Problem& problem, const Operands& operands, cudaStream_t stream)
    : problem_(problem),
      want_(Value(gpu::AllocateDevice(Bytes(problem)))),
      differences_(Value(gpu::AllocateDevice(sizeof(Differences)))) {
  auto* numbers = static_cast<double*>(want_.get());
  relative_ = 2 * UnitRoundoff(OutDType(problem));
  if (const auto* gemm = std::get_if<GemmProblem>(&problem)) {
    absolute_ = AbsoluteTolerance(*gemm);
    Check(ReferenceGemm(*gemm, operands, numbers, stream), "computing the reference product");
  } else if (const auto* reduce = std::get_if<ReduceProblem>(&problem)) {
    absolute_ = AbsoluteTolerance(*reduce);
    relative_ += RelativeTolerance(*reduce);
    Check(ReferenceReduce(*reduce, operands, numbers, numbers + OutCount(problem), stream),
          "computing the reference reduction");
  } else if (const auto* map = std::get_if<MapProblem>(&problem)) {
    relative_ = 0;  // one operation, rounded once
    Check(ReferencePair(*PairOf(*map), operands, numbers, stream), "computing the reference elements");
  } else {
    Check(ReferenceTranspose(std::get<TransposeProblem>(problem), operands.in[0], want_.get(), stream),
          "computing the reference transposition");
  }
  Check(cudaStreamSynchronize(stream), "computing the reference");
}

std::string Expected::FindError(const void* got, cudaStream_t stream) const {
  Differences differences;
  auto* device = static_cast<Differences*>(differences_.get());
  Check(cudaMemcpyAsync(device, &differences, sizeof(differences), cudaMemcpyHostToDevice, stream),
        "comparing results");
  if (std::holds_alternative<TransposeProblem>(problem_)) {
    Check(CompareBytes(got, want_.get(), OutBytes(problem_), device, stream), "comparing results");
  } else {
    Check(CompareNumbers(got, OutDType(problem_), static_cast<const double*>(want_.get()), OutCount(problem_),
                         absolute_, relative_, device, stream),
          "comparing results");
  }
  Check(cudaMemcpyAsync(&differences, device, sizeof(differences), cudaMemcpyDeviceToHost, stream),
        "comparing results");
  Check(cudaStreamSynchronize(stream), "comparing results");
  if (differences.count == 0) return "";
  return absl::StrCat(differences.count, " differences, the first at ",
                      std::holds_alternative<TransposeProblem>(problem_) ? "byte " : "element ",
                      differences.first);
}

}  // namespace warpline::bench
