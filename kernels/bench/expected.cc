#include "kernels/bench/expected.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/bench/check.h"
#include "kernels/bench/operand_slots.h"
#include "kernels/bench/reference.h"

namespace warpline::bench {
namespace {

// Largest relative error of rounding to nearest.
double UnitRoundoff(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 0x1p-11;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF64:
      return 0x1p-53;
    default:
      return 0x1p-24;
  }
}

// Halves are summed up in f32.
double AccumulatorRoundoff(DType dtype) { return dtype == DType::kF64 ? 0x1p-53 : 0x1p-24; }

// Of a dot product of k pairs of standard normal numbers. A partial sum is about sqrt(k) large and there are
// at most k additions. Rounding errors of either sign add up to about u k / 2; tensor cores cut off instead
// of rounding, once a step of at most 16 products, which adds up to no more than u k^1.5 / 8. A worst case is
// no help here: it is as large as the result.
double AbsoluteTolerance(const GemmProblem& problem) {
  const auto k = static_cast<double>(problem.k);
  const double u = AccumulatorRoundoff(problem.dtype);
  double tolerance = 16 * u * k;
  if (problem.dtype != DType::kF64) tolerance += u * k * std::sqrt(k) / 8;
  // Operands cut to 11 bits: independent errors of the products, of 2^-10 at most. Six standard deviations.
  if (problem.precision == Precision::kTf32) tolerance += 12 * 0x1p-10 * std::sqrt(k);
  return tolerance;
}

// Of a sum of n standard normal numbers, whatever chains of up to 2^16 additions it was made of.
double AbsoluteTolerance(const ReduceProblem& problem) {
  const auto n = static_cast<double>(problem.ReducedCount());
  return 4 * AccumulatorRoundoff(problem.dtype) * std::sqrt(n) * std::sqrt(std::min(n, 65536.0));
}

}  // namespace

std::size_t Expected::Bytes(const BenchProblem& problem) {
  return std::holds_alternative<TransposeProblem>(problem)
             ? OutBytes(problem)
             : static_cast<std::size_t>(OutCount(problem)) * sizeof(double);
}

Expected::Expected(const BenchProblem& problem, const Operands& operands, cudaStream_t stream)
    : problem_(problem),
      want_(Value(gpu::AllocateDevice(Bytes(problem)))),
      differences_(Value(gpu::AllocateDevice(sizeof(Differences)))) {
  if (const auto* gemm = std::get_if<GemmProblem>(&problem)) {
    absolute_ = AbsoluteTolerance(*gemm);
    Check(ReferenceGemm(*gemm, operands.in[0], operands.in[1], static_cast<double*>(want_.get()), stream),
          "computing the reference product");
  } else if (const auto* reduce = std::get_if<ReduceProblem>(&problem)) {
    absolute_ = AbsoluteTolerance(*reduce);
    Check(ReferenceSum(*reduce, operands.in[0], static_cast<double*>(want_.get()), stream),
          "computing the reference sums");
  } else {
    const auto& transpose = std::get<TransposeProblem>(problem);
    Check(ReferenceTranspose(operands.in[0], want_.get(), transpose.shape[0], transpose.shape[1],
                             SizeOf(transpose.dtype), stream),
          "computing the reference transposition");
  }
  relative_ = 2 * UnitRoundoff(OutDType(problem));
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
