#include "server/tuning/agreement.h"

#include <cmath>

#include "kernels/unit_roundoff.h"

namespace warpline {
namespace {

constexpr double kFactor = 16;

// Returns the roundoff of the type in which elements of `dtype` are added up. Integers become floats only in
// the result.
double RoundoffOfSums(DType dtype, DType out) {
  if (IsComplex(dtype)) return UnitRoundoff(PartOf(dtype));
  if (!IsFloat(dtype)) return IsFloat(out) ? UnitRoundoff(DType::kF64) : 0;
  return UnitRoundoff(dtype == DType::kF64 ? dtype : DType::kF32);
}

Agreement Of(const TransposeProblem&) { return {}; }

// All variants give the same bits.
Agreement Of(const MapProblem&) { return {}; }
Agreement Of(const TakeProblem&) { return {}; }
Agreement Of(const PutProblem&) { return {}; }
Agreement Of(const ScanProblem&) { return {}; }
Agreement Of(const SortProblem&) { return {}; }
Agreement Of(const SearchProblem&) { return {}; }
Agreement Of(const CompressProblem&) { return {}; }

Agreement Of(const GemmProblem& p) {
  const auto k = static_cast<double>(p.k) + kFactor;  // C, bias and activation round too
  Agreement agreement = {kFactor * k * RoundoffOfSums(p.dtype, p.OutDType()),
                         2 * UnitRoundoff(PartOf(p.OutDType()))};
  // Operands are rounded to 11 bits, by some variants only.
  if (p.precision == Precision::kTf32) agreement.absolute += kFactor * std::sqrt(k) * 0x1p-11;
  // The library's gelu, where it is allowed (GemmCublasFuses).
  if (p.activation == Activation::kGelu) agreement.absolute += std::sqrt(k) * 0x1p-10;
  return agreement;
}

Agreement Of(const ReduceProblem& p) {
  if (IsArg(p.op) || p.op == ReduceOp::kMin || p.op == ReduceOp::kMax) return {};
  const auto n = static_cast<double>(p.ReducedCount()) + 1;
  const double sums = kFactor * n * RoundoffOfSums(p.dtype, p.OutDType());
  // A product of n factors has n relative roundings, and so has a sum of positive numbers at most.
  return {sums, sums + 2 * UnitRoundoff(p.OutDType())};
}

}  // namespace

Agreement AgreementOf(const Problem& problem) {
  return std::visit([](const auto& p) { return Of(p); }, problem);
}

}  // namespace warpline
