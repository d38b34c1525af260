#include "kernels/gemm/gemv_plan.h"

#include <algorithm>

#include "kernels/align.h"
#include "kernels/gemm/kernels.h"

namespace warpline {
namespace {

// Maximum number of vectors for which kernels exist. With more vectors of 16-bit types, the f32 units would
// be slower than the memory.
constexpr std::int64_t MostVectors(DType dtype) { return SizeOf(dtype) == 2 ? 8 : 16; }

}  // namespace

GemvPlan PlanGemv(const GemmProblem& problem, const DeviceTraits& traits) {
  const auto per_vector = static_cast<std::int64_t>(16 / SizeOf(problem.dtype));
  GemvPlan plan;
  plan.swapped = problem.n < problem.m;
  plan.vectors = std::min(problem.m, problem.n);
  plan.columns = std::max(problem.m, problem.n);
  plan.batch = problem.batch.Count();
  const bool vector_along_k = plan.swapped ? problem.trans_b : !problem.trans_a;
  const std::int64_t vector_ld = plan.swapped ? problem.ldb : problem.lda;
  plan.vector_row = vector_along_k ? vector_ld : 1;
  plan.vector_k = vector_along_k ? 1 : vector_ld;
  plan.vector_matrix = plan.swapped ? problem.StrideB() : problem.StrideA();
  plan.along_k = plan.swapped ? !problem.trans_a : problem.trans_b;
  plan.ld = plan.swapped ? problem.lda : problem.ldb;
  plan.matrix = plan.swapped ? problem.StrideA() : problem.StrideB();

  const std::int64_t multiprocessors = std::max(traits.multiprocessors, 1);
  constexpr std::int64_t kMaxSplits = 64;  // eight loads at once for each thread that adds them up
  std::int64_t wanted = 0, least_depth = 0;
  if (plan.along_k) {
    plan.gathered_count = problem.batch.CountAlong(plan.swapped ? problem.batch.b : problem.batch.a);
    plan.gathered_row = (problem.k + per_vector - 1) / per_vector * per_vector;
    plan.gathers = plan.vector_k != 1 || (plan.vectors > 1 && plan.vector_row % per_vector != 0) ||
                   (plan.gathered_count > 1 && plan.vector_matrix % per_vector != 0);
    // Each warp should have several vectors per lane. Otherwise the sum over its lanes dominates.
    constexpr std::int64_t kVectorsPerLane = 4;
    const std::int64_t per_warp = 32 * per_vector * kVectorsPerLane;
    plan.warps_k = problem.k >= 8 * per_warp   ? 8
                   : problem.k >= 4 * per_warp ? 4
                   : problem.k >= 2 * per_warp ? 2
                                               : 1;
    plan.tile = kGemvWarps / plan.warps_k * GemvRowsPerWarp(plan.vectors);
    wanted = 2 * multiprocessors;
    least_depth = per_warp * plan.warps_k;
  } else {
    plan.tile = 32 * per_vector;
    wanted = 8 * multiprocessors;
    least_depth = 64;
  }
  const std::int64_t tiles = std::max<std::int64_t>(plan.TilesAcross() * plan.batch, 1);
  const std::int64_t most = std::clamp<std::int64_t>(problem.k / least_depth, 1, kMaxSplits);
  plan.splits = std::clamp<std::int64_t>(CeilDiv(wanted, tiles), 1, most);
  plan.depth = std::max<std::int64_t>(CeilDiv(CeilDiv(problem.k, plan.splits), 64), 1) * 64;
  plan.splits = std::max<std::int64_t>(CeilDiv(problem.k, plan.depth), 1);
  return plan;
}

GemvLayout::GemvLayout(const GemvPlan& plan, DType dtype) {
  const std::size_t wide = dtype == DType::kF64 ? 8 : 4;
  partials = AlignUp(static_cast<std::size_t>(plan.GatheredElements()) * SizeOf(dtype), 256);
  end = partials + static_cast<std::size_t>(plan.PartialElements()) * wide;
}

bool GemmGemvSupports(const GemmProblem& problem, const DeviceTraits& traits) {
  const GemvPlan plan = PlanGemv(problem, traits);
  if (plan.vectors > MostVectors(problem.dtype)) return false;
  if (plan.ld % static_cast<std::int64_t>(16 / SizeOf(problem.dtype)) != 0) return false;
  // Uses no more workspace than other rows need for the same problem.
  constexpr double kElementBytes = 8;
  return (plan.GatheredElements() + plan.PartialElements()) * kElementBytes + 256 <=
         static_cast<double>(kCublasWorkspaceBytes);
}

// True if this kernel is faster than the library: reading the large operand takes longer than a launch, and
// there are few vectors.
bool GemmGemvPreferred(const GemmProblem& problem, const DeviceTraits& traits) {
  constexpr std::int64_t kMinBytes = 1 << 20;  // of the large operand
  const std::int64_t columns = std::max(problem.m, problem.n), vectors = std::min(problem.m, problem.n);
  const auto row_bytes = static_cast<double>(problem.k) * static_cast<double>(SizeOf(problem.dtype));
  if (row_bytes * static_cast<double>(columns) < kMinBytes) return false;
  if (!GemmLibraryDoes(problem, traits)) return true;
  // The rules come from 313 products of up to 8 vectors on an H200
  // (docs/benchmarks/history.md#2026-11-25-drawn-problems). With more vectors the f32 units are the limit.
  const GemvPlan plan = PlanGemv(problem, traits);
  switch (SizeOf(problem.dtype)) {
    case 2: {
      // The library reads as fast, with three exceptions: rows of D of 4 or 6 bytes, work that it leaves to a
      // second kernel, and most unaligned rows of D (docs/benchmarks/2026-11-26-h200-odd-rows.md). If rows of
      // the large operand are shorter, wgmma may be faster.
      constexpr std::int64_t kMinSwapRowElements = 2048;
      const bool has_short_rows = plan.swapped && (vectors == 2 || vectors == 3);
      const bool reads_slowly = GemmLibraryWritesSlowly(problem, traits) && vectors <= 8 &&
                                (vectors <= 2 || problem.k >= kMinSwapRowElements) &&
                                !(plan.swapped && vectors == 1);
      return has_short_rows || reads_slowly || (vectors <= 4 && !GemmCublasFuses(problem));
    }
    case 4:
      if (problem.precision != Precision::kTf32) return vectors <= 8;
      // The library's tensor cores are as fast as the memory, if vectors need not be gathered.
      return plan.along_k && (vectors == 1 || (vectors == 2 && plan.gathers));
    default:
      return false;  // f64 too
  }
}

std::size_t GemmGemvWorkspace(const GemmProblem& problem, const DeviceTraits& traits) {
  return GemvLayout(PlanGemv(problem, traits), problem.dtype).end;
}

VariantCost GemmGemvCost(const GemmProblem& problem, const DeviceTraits& traits) {
  const GemvPlan plan = PlanGemv(problem, traits);
  constexpr double kTensorCores = 16;  // times as fast as the f32 units; half of that for tf32
  const double slowdown = SizeOf(problem.dtype) == 2              ? kTensorCores
                          : problem.precision == Precision::kTf32 ? kTensorCores / 2
                                                                  : 1;
  return {.transfer = 1.25, .arithmetic = slowdown, .launches = 1.0 + plan.gathers + plan.HasPartials()};
}

}  // namespace warpline
