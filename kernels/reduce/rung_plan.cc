#include "kernels/reduce/rung_plan.h"

#include <algorithm>
#include <bit>

#include "kernels/ceil_div.h"
#include "kernels/reduce/plan_parts.h"

namespace warpline {
namespace {

constexpr std::size_t kMaxPartialBytes = 32;  // the moments of var: four doubles

void PlanRows(const CanonicalReduce& reduce, int vector, int multiprocessors, RungPlan* plan) {
  // A warp is fast enough for rows of a few thousand elements. With few rows, whole CTAs fill the device
  // better.
  const bool few = reduce.results < 8 * std::int64_t{multiprocessors};
  if (reduce.reduced_count >= 4096 || (few && reduce.reduced_count >= 512)) {
    plan->lanes = kReduceThreads;
  } else {
    plan->lanes = CeilPow2(CeilDiv(reduce.reduced_count, vector), 32);
  }
  plan->results_per_cta = kReduceThreads / plan->lanes;
}

// Returns whether the results of a thread are contiguous in memory, and every load of them has the same
// alignment as the first. The results must not extend past the innermost axis. All other axes must step over
// whole vectors.
bool AreVectors(const CanonicalReduce& reduce, std::int64_t inner, int vector) {
  if (reduce.kept.rank == 0 || reduce.kept.strides[reduce.kept.rank - 1] != 1) return false;
  bool vectors = inner % vector == 0;
  for (int i = 0; i + 1 < reduce.kept.rank; ++i) vectors = vectors && reduce.kept.strides[i] % vector == 0;
  for (int i = 0; i < reduce.reduced.rank; ++i) vectors = vectors && reduce.reduced.strides[i] % vector == 0;
  return vectors;
}

void PlanColumns(const CanonicalReduce& reduce, int vector, RungPlan* plan) {
  const std::int64_t inner = reduce.kept.rank > 0 ? reduce.kept.dims[reduce.kept.rank - 1] : 1;
  plan->columns = AreVectors(reduce, inner, vector) ? vector : 1;
  // A warp with contiguous columns is coalesced. Several such rows of threads share the elements if each gets
  // at least 4.
  const int min_lanes = CeilPow2(CeilDiv(inner, plan->columns), 32);
  const auto rows_worth = static_cast<int>(std::bit_floor(
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(reduce.reduced_count / 4, 1, kReduceThreads))));
  plan->lanes = kReduceThreads / std::min(kReduceThreads / min_lanes, rows_worth);
  plan->results_per_cta = plan->lanes * plan->columns;
}

}  // namespace

std::size_t RungPlan::WorkspaceBytes(std::int64_t results) const {
  return split > 1 ? static_cast<std::size_t>(results) * static_cast<std::size_t>(split) * kMaxPartialBytes
                   : 0;
}

std::size_t RungPlan::TicketBytes() const {
  return split > 1 ? static_cast<std::size_t>(tiles) * sizeof(std::uint32_t) : 0;
}

bool HasTypedKernel(const ReduceProblem& problem) {
  switch (problem.op) {
    case ReduceOp::kMin:
    case ReduceOp::kMax:
    case ReduceOp::kArgmin:
    case ReduceOp::kArgmax:
      return IsFloat(problem.dtype) || problem.dtype == DType::kI32;
    case ReduceOp::kSum:
    case ReduceOp::kMean:
      if (problem.dtype == DType::kI32) return true;
      [[fallthrough]];
    case ReduceOp::kNorm1:
    case ReduceOp::kNorm2:
    case ReduceOp::kSumSq:
    case ReduceOp::kLogSumExp:
      // f32 would be too coarse for an f64 result of narrower elements.
      return IsFloat(problem.dtype) && (problem.dtype == DType::kF64 || problem.OutDType() != DType::kF64);
    case ReduceOp::kVar:
    case ReduceOp::kStd:
      return problem.dtype == DType::kF32 || problem.dtype == DType::kF64;
    default:
      return false;
  }
}

bool HasRungs(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kI32; }

bool IsSumLike(ReduceOp op) {
  return op == ReduceOp::kSum || op == ReduceOp::kMean || op == ReduceOp::kNorm1 || op == ReduceOp::kNorm2 ||
         op == ReduceOp::kSumSq;
}

int VectorOf(const ReduceProblem& problem) {
  return HasTypedKernel(problem) ? 16 / static_cast<int>(SizeOf(problem.dtype)) : 1;
}

std::size_t CubWorkspaceBytes(const CanonicalReduce& reduce, const DeviceTraits& traits) {
  constexpr std::size_t kAlignment = 512;  // 256 for CUB's allocation, and 256 for its first address
  if (reduce.results != 1) return kAlignment;
  // One partial result per CTA. The number of CTAs is CUB_SUBSCRIPTION_FACTOR waves of as many as fit.
  constexpr std::size_t kMaxCtasPerMultiprocessor = 32, kWaves = 5;
  const auto multiprocessors = static_cast<std::size_t>(std::max(1, traits.multiprocessors));
  return multiprocessors * kMaxCtasPerMultiprocessor * kWaves * kMaxPartialBytes + kAlignment;
}

RungPlan PlanRung(const CanonicalReduce& reduce, int vector, const DeviceTraits& traits) {
  const int multiprocessors = std::max(1, traits.multiprocessors);
  RungPlan plan;
  plan.rows = reduce.InnermostReduced();
  if (plan.rows) {
    PlanRows(reduce, vector, multiprocessors, &plan);
  } else {
    PlanColumns(reduce, vector, &plan);
  }
  plan.tiles = CeilDiv(reduce.results, plan.results_per_cta);

  // If the device would have fewer than two CTAs per multiprocessor, split the tiles, up to about as many
  // CTAs as it holds at the same time (one more of those for columns, which need fewer registers). A CTA with
  // fewer than 8192 elements (two rounds of four 16-byte loads per thread) would not repay the second launch.
  std::int64_t split = 1;
  if (plan.tiles > 0 && plan.tiles < 2 * multiprocessors) {
    constexpr std::int64_t kMinElements = 8192;
    const std::int64_t min_chunk = CeilDiv(kMinElements, plan.results_per_cta);
    split = std::clamp<std::int64_t>(CeilDiv((plan.rows ? 3 : 4) * multiprocessors, plan.tiles), 1,
                                     std::max<std::int64_t>(1, reduce.reduced_count / min_chunk));
  }
  // Use whole vectors, so that chunks of an aligned row are aligned.
  plan.chunk = std::max<std::int64_t>(1, CeilDiv(CeilDiv(reduce.reduced_count, split), 16)) * 16;
  plan.split = static_cast<int>(std::max<std::int64_t>(1, CeilDiv(reduce.reduced_count, plan.chunk)));
  return plan;
}

}  // namespace warpline
