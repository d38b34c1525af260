#include "kernels/reduce/vector_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "kernels/ceil_div.h"
#include "kernels/reduce/plan_parts.h"
#include "kernels/reduce/row_plans.h"
#include "kernels/reduce/vector_costs.h"

namespace warpline {
namespace {

constexpr std::size_t kMaxPartialBytes = 32;  // the moments of var: four doubles
// Returns how many results are contiguous in memory, for each index of the outer axes.
std::int64_t InnerOf(const CanonicalReduce& reduce) {
  const int last = reduce.kept.rank - 1;
  return last >= 0 && reduce.kept.strides[last] == 1 ? reduce.kept.dims[last] : 1;
}

// Returns how many loads of columns a thread has in flight.
double LoadsOfColumns(const ReduceProblem& problem) {
  return 64.0 / static_cast<double>(ColumnsOf(NumberClassOf(problem.dtype)) * ElementBytes(problem));
}

// Returns whether all rows begin at multiples of `columns` columns.
bool HasWholeLoads(const CanonicalReduce& reduce, std::int64_t inner, std::int64_t columns) {
  return inner % columns == 0 && AreMultiples(reduce.kept, std::max(0, reduce.kept.rank - 1), columns) &&
         AreMultiples(reduce.reduced, reduce.reduced.rank, columns);
}

// Returns whether columns are one block of memory, or several blocks that are each large enough for a CTA.
// Columns that a warp loads in whole vectors do not count: they are as fast as others with whole loads.
bool IsFlat(const CanonicalReduce& reduce, std::int64_t inner, std::int64_t element_bytes,
            std::int64_t columns, bool aligned_base) {
  constexpr std::int64_t kMinBytes = 16384;
  if (aligned_base && inner % (kWarpLanes * columns) == 0 && HasWholeLoads(reduce, inner, columns))
    return false;
  const std::int64_t bytes = reduce.reduced_count * inner * element_bytes;
  return reduce.reduced.rank == 1 && reduce.reduced.strides[0] == inner && bytes >= kMinBytes &&
         inner <= kVectorThreads;
}

void PlanFlatColumns(const ReduceProblem& problem, const CanonicalReduce& reduce, int multiprocessors,
                     VectorPlan* plan) {
  const std::int64_t columns = ColumnsOf(NumberClassOf(problem.dtype));
  const std::int64_t block = reduce.reduced_count * plan->inner;
  const std::int64_t period = plan->inner / std::gcd(plan->inner, columns);
  plan->shape = ReduceShape::kFlatColumns;
  plan->lanes = static_cast<int>(kVectorThreads / period * period);
  plan->threads = CeilDiv(plan->lanes, kWarpLanes) * kWarpLanes;
  plan->results_per_cta = plan->inner;
  plan->tiles = reduce.results / plan->inner;
  plan->steps = CeilDiv(block, plan->lanes * columns);
  SplitTiles(block * ElementBytes(problem), ColumnCtas(/*whole_loads=*/true, HasNumber(problem.op)),
             multiprocessors, plan);
}

// True for contiguous blocks that are enough for all multiprocessors, and so small that shared memory holds
// several: one is added up while others are copied.
bool IsPackedColumns(const CanonicalReduce& reduce, std::int64_t inner, std::int64_t element_bytes,
                     bool aligned_base, int multiprocessors) {
  const std::int64_t block = reduce.reduced_count * inner;
  return aligned_base && block > 0 && block * element_bytes <= kPackedBlockBytes &&
         reduce.reduced.rank == 1 && reduce.reduced.strides[0] == inner && reduce.kept.rank == 2 &&
         reduce.kept.strides[0] == block && reduce.kept.dims[0] >= multiprocessors;
}

void PlanPackedColumns(const CanonicalReduce& reduce, std::int64_t element_bytes, int multiprocessors,
                       VectorPlan* plan) {
  constexpr std::int64_t kBytes = 32768;  // per CTA, unless a block has more
  const std::int64_t blocks = reduce.kept.dims[0],
                     block_bytes = reduce.reduced_count * plan->inner * element_bytes;
  const std::int64_t share = CeilDiv(blocks, 8 * std::int64_t{multiprocessors});
  const std::int64_t blocks_per_cta = std::clamp<std::int64_t>(kBytes / block_bytes, 1, share);
  plan->shape = ReduceShape::kPackedColumns;
  plan->results_per_cta = blocks_per_cta * plan->inner;
  plan->lanes = static_cast<int>(
      std::clamp<std::int64_t>(kVectorThreads / plan->results_per_cta, 1, reduce.reduced_count));
  plan->tiles = CeilDiv(blocks, blocks_per_cta);
}

void PlanColumns(const ReduceProblem& problem, const CanonicalReduce& reduce, bool aligned_base,
                 int multiprocessors, VectorPlan* plan) {
  const std::int64_t bytes = ElementBytes(problem), columns = ColumnsOf(NumberClassOf(problem.dtype));
  plan->shape = ReduceShape::kColumns;
  plan->aligned = aligned_base && HasWholeLoads(reduce, plan->inner, columns);
  plan->steps = reduce.reduced_count;
  const int ctas = ColumnCtas(plan->aligned, HasNumber(problem.op));
  const auto plan_for = [&](int lanes) {
    VectorPlan with = *plan;
    with.lanes = lanes;
    with.results_per_cta = lanes * columns;
    with.tiles = CeilDiv(reduce.results, with.results_per_cta);
    SplitTiles(reduce.reduced_count * std::min(reduce.results, with.results_per_cta) * bytes, ctas,
               multiprocessors, &with);
    return with;
  };
  // Uses 256 contiguous bytes, or more if a warp loads more at once. The other threads of the CTA share the
  // elements if each gets several groups of loads.
  const std::int64_t least = plan->aligned ? 4 : 32;
  const int wide = static_cast<int>(std::max<std::int64_t>(kWarpLanes, 256 / (columns * bytes)));
  const int side_by_side = CeilPow2(CeilDiv(reduce.results, columns), wide);
  const auto rows_worth = static_cast<int>(std::bit_floor(
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(reduce.reduced_count / least, 1, kVectorThreads))));
  const int narrowest = kVectorThreads / std::min(kVectorThreads / side_by_side, rows_worth);
  const auto cost_of = [&](const VectorPlan& p) {
    return CostOf(p, problem, reduce, ctas, multiprocessors) *
           FillCost(LoadsOfColumns(problem), static_cast<double>(p.chunk) * p.lanes / kVectorThreads);
  };
  *plan = Cheapest(plan_for(narrowest), 2 * narrowest, kVectorThreads, reduce.results, plan_for, cost_of);
}

// True if there are few rows, so that a thread with less than a vector of each row would have little work,
// and there are results for half of the threads that the device holds.
bool IsFewRows(const ReduceProblem& problem, const CanonicalReduce& reduce, std::int64_t inner,
               bool aligned_base, int multiprocessors) {
  constexpr std::int64_t kMaxRows = 64;
  const std::int64_t vector = 16 / ElementBytes(problem);
  const bool moments = (problem.op == ReduceOp::kVar || problem.op == ReduceOp::kStd) &&
                       problem.dtype == DType::kF32 && problem.OutDType() != DType::kF64;
  // A thread does not have registers for 64-bit sums of 16 columns.
  const bool narrow_sum = ElementBytes(problem) == 1 && problem.op != ReduceOp::kMin &&
                          problem.op != ReduceOp::kMax && problem.op != ReduceOp::kNormInf;
  return (HasNumber(problem.op) || moments) && !narrow_sum && aligned_base && reduce.reduced.rank == 1 &&
         reduce.reduced_count > 0 && reduce.reduced_count <= kMaxRows &&
         HasWholeLoads(reduce, inner, vector) &&
         2 * (reduce.results / vector) >= std::int64_t{kFewRowsCtas} * multiprocessors * kVectorThreads;
}

void PlanFewRows(const ReduceProblem& problem, const CanonicalReduce& reduce, VectorPlan* plan) {
  plan->shape = ReduceShape::kFewRows;
  plan->results_per_cta = kVectorThreads * (16 / ElementBytes(problem));
  plan->tiles = CeilDiv(reduce.results, plan->results_per_cta);
  plan->steps = plan->chunk = reduce.reduced_count;
}

// Returns whether rows are unaligned to vectors. A few rows of wide elements are faster element by element,
// because shifted columns must be combined in shared memory.
bool IsShifted(const CanonicalReduce& reduce, std::int64_t inner, std::int64_t element_bytes,
               std::int64_t columns, bool aligned_base) {
  constexpr std::int64_t kMinColumns = 64;
  const std::int64_t least_rows = element_bytes < 4 ? 16 : 96;
  return aligned_base && !HasWholeLoads(reduce, inner, columns) && reduce.reduced.rank == 1 &&
         inner >= kMinColumns && reduce.reduced_count >= least_rows;
}

void PlanShiftedColumns(const ReduceProblem& problem, const CanonicalReduce& reduce, int multiprocessors,
                        VectorPlan* plan) {
  const std::int64_t bytes = ElementBytes(problem), columns = ColumnsOf(NumberClassOf(problem.dtype));
  constexpr std::int64_t kMinRowsOfNarrowTiles = 64;
  plan->shape = ReduceShape::kShiftedColumns;
  plan->steps = reduce.reduced_count;
  const int ctas = ColumnCtas(/*whole_loads=*/true, HasNumber(problem.op));
  const auto plan_for = [&](int lanes) {
    VectorPlan with = *plan;
    with.lanes = lanes;
    with.results_per_cta = (lanes - 1) * columns + 1;  // for any start within a vector
    with.tiles = reduce.results / plan->inner * CeilDiv(plan->inner, with.results_per_cta);
    SplitTiles(reduce.reduced_count * std::min(plan->inner, with.results_per_cta) * bytes, ctas,
               multiprocessors, &with);
    return with;
  };
  // The ends of rows are loaded by two tiles.
  const auto cost_of = [&](const VectorPlan& p) {
    return CostOf(p, problem, reduce, ctas, multiprocessors) *
           FillCost(LoadsOfColumns(problem), static_cast<double>(p.chunk) * p.lanes / kVectorThreads) *
           (1 + 16.0 / static_cast<double>(p.lanes * columns * bytes));
  };
  const int usual =
      reduce.reduced_count < kMinRowsOfNarrowTiles || columns * bytes * kWarpLanes < 256 ? 64 : 32;
  // The number of threads of a result is a multiple of the columns of a vector: two, four or eight.
  const int most = kVectorThreads / static_cast<int>(columns);
  *plan = Cheapest(plan_for(usual), 2 * usual, most, plan->inner, plan_for, cost_of);
}

// Columns of a tile of kBulkColumns: one warp copies them, the other threads add them.
constexpr std::int64_t BulkColumns(std::int64_t columns) { return (kMaxBulkThreads - kWarpLanes) * columns; }

// Returns whether rows are unaligned to vectors, and the device copies them faster than threads load them.
// There must be more bytes than move while the first ones arrive. There must also be tiles for nine tenths of
// the CTAs that the device holds, unless several axes are reduced, which kShiftedColumns does not support.
// Sums of 8-byte elements are as fast without it.
bool IsBulk(const ReduceProblem& problem, const CanonicalReduce& reduce, std::int64_t inner,
            bool aligned_base, const DeviceTraits& traits) {
  constexpr std::int64_t kMinColumns = 256, kMinBytes = 32 << 20;
  const std::int64_t bytes = ElementBytes(problem), columns = ColumnsOf(NumberClassOf(problem.dtype));
  if (!traits.copies_bulk() || !aligned_base || inner < kMinColumns ||
      reduce.results * reduce.reduced_count * bytes < kMinBytes || HasWholeLoads(reduce, inner, columns) ||
      (bytes == 8 && HasNumber(problem.op))) {
    return false;
  }
  const std::int64_t tiles = reduce.results / inner * CeilDiv(inner, BulkColumns(columns));
  return reduce.reduced.rank > 1 || 10 * tiles >= std::int64_t{9 * kBulkCtas} * traits.multiprocessors;
}

void PlanBulkColumns(const ReduceProblem& problem, const CanonicalReduce& reduce, int multiprocessors,
                     VectorPlan* plan) {
  constexpr std::int64_t kPack = 4;  // rows that a thread adds at once
  const std::int64_t bytes = ElementBytes(problem), columns = ColumnsOf(NumberClassOf(problem.dtype));
  const std::int64_t across = CeilDiv(plan->inner, BulkColumns(columns));  // number of tiles
  plan->shape = ReduceShape::kBulkColumns;
  plan->results_per_cta = CeilDiv(plan->inner, across);
  plan->threads = static_cast<int>(CeilDiv(plan->results_per_cta, columns * kWarpLanes) + 1) * kWarpLanes;
  plan->tiles = reduce.results / plan->inner * CeilDiv(plan->inner, plan->results_per_cta);
  plan->pitch = static_cast<int>(CeilDiv(plan->results_per_cta * bytes, 16) + 1) * 16;
  plan->rows_per_stage =
      static_cast<int>(std::min<std::int64_t>(kMaxBulkRows, kBulkStageBytes / plan->pitch / kPack * kPack));
  plan->steps = reduce.reduced_count;
  SplitTiles(reduce.reduced_count * plan->results_per_cta * bytes, kBulkCtas, multiprocessors, plan);
}

}  // namespace

NumberClass NumberClassOf(DType dtype) {
  if (IsFloat(dtype)) return dtype == DType::kF64 ? NumberClass::kF64 : NumberClass::kF32;
  const bool wide = SizeOf(dtype) == 8;
  if (IsSigned(dtype)) return wide ? NumberClass::kI64 : NumberClass::kI32;
  return wide ? NumberClass::kU64 : NumberClass::kU32;
}

std::size_t VectorPlan::WorkspaceBytes(std::int64_t results) const {
  return split > 1 ? static_cast<std::size_t>(results) * static_cast<std::size_t>(split) * kMaxPartialBytes
                   : 0;
}

std::optional<VectorPlan> PlanVectorsBy(ReduceShape shape, const ReduceProblem& problem,
                                        const CanonicalReduce& reduce, bool aligned_base,
                                        const DeviceTraits& traits) {
  const int multiprocessors = std::max(1, traits.multiprocessors);
  const std::int64_t bytes = ElementBytes(problem), columns = ColumnsOf(NumberClassOf(problem.dtype));
  const bool is_of_rows =
      shape == ReduceShape::kRows || shape == ReduceShape::kRuns || shape == ReduceShape::kPackedRows;
  if (is_of_rows != reduce.InnermostReduced()) return std::nullopt;
  VectorPlan plan;
  plan.inner = is_of_rows ? 1 : InnerOf(reduce);
  bool can = true;
  switch (shape) {
    case ReduceShape::kRows:
    case ReduceShape::kRuns:
      PlanRows(problem, reduce, aligned_base, multiprocessors, &plan);
      can = plan.shape == shape;
      break;
    case ReduceShape::kPackedRows:
      can = IsPacked(reduce, reduce.reduced_count * bytes, aligned_base);
      if (can) PlanPackedRows(reduce, reduce.reduced_count * bytes, multiprocessors, &plan);
      break;
    case ReduceShape::kColumns:
      PlanColumns(problem, reduce, aligned_base, multiprocessors, &plan);
      break;
    case ReduceShape::kFewRows:
      can = IsFewRows(problem, reduce, plan.inner, aligned_base, multiprocessors);
      if (can) PlanFewRows(problem, reduce, &plan);
      break;
    case ReduceShape::kShiftedColumns:
      can = IsShifted(reduce, plan.inner, bytes, columns, aligned_base);
      if (can) PlanShiftedColumns(problem, reduce, multiprocessors, &plan);
      break;
    case ReduceShape::kBulkColumns:
      can = IsBulk(problem, reduce, plan.inner, aligned_base, traits);
      if (can) PlanBulkColumns(problem, reduce, multiprocessors, &plan);
      break;
    case ReduceShape::kFlatColumns:
      can = IsFlat(reduce, plan.inner, bytes, columns, aligned_base);
      if (can) PlanFlatColumns(problem, reduce, multiprocessors, &plan);
      break;
    case ReduceShape::kPackedColumns:
      can = IsPackedColumns(reduce, plan.inner, bytes, aligned_base, multiprocessors);
      if (can) PlanPackedColumns(reduce, bytes, multiprocessors, &plan);
      break;
  }
  return can ? std::optional(plan) : std::nullopt;
}

VectorPlan PlanVectors(const ReduceProblem& problem, const CanonicalReduce& reduce, bool aligned_base,
                       const DeviceTraits& traits) {
  const int multiprocessors = std::max(1, traits.multiprocessors);
  const std::int64_t bytes = ElementBytes(problem);
  VectorPlan plan;
  if (reduce.InnermostReduced()) {
    const std::int64_t row_bytes = reduce.reduced_count * bytes;
    if (IsPacked(reduce, row_bytes, aligned_base)) {
      PlanPackedRows(reduce, row_bytes, multiprocessors, &plan);
    } else {
      PlanRows(problem, reduce, aligned_base, multiprocessors, &plan);
    }
    return plan;
  }
  plan.inner = InnerOf(reduce);
  const std::int64_t columns = ColumnsOf(NumberClassOf(problem.dtype));
  if (IsPackedColumns(reduce, plan.inner, bytes, aligned_base, multiprocessors)) {
    PlanPackedColumns(reduce, bytes, multiprocessors, &plan);
  } else if (IsFlat(reduce, plan.inner, bytes, columns, aligned_base)) {
    PlanFlatColumns(problem, reduce, multiprocessors, &plan);
  } else if (IsFewRows(problem, reduce, plan.inner, aligned_base, multiprocessors)) {
    PlanFewRows(problem, reduce, &plan);
  } else if (IsBulk(problem, reduce, plan.inner, aligned_base, traits)) {
    PlanBulkColumns(problem, reduce, multiprocessors, &plan);
    if (bytes < 4 || !IsShifted(reduce, plan.inner, bytes, columns, aligned_base)) return plan;
    // With only two CTAs per multiprocessor, the CTAs of an incomplete last wave run alone.
    VectorPlan shifted = {.inner = plan.inner};
    PlanShiftedColumns(problem, reduce, multiprocessors, &shifted);
    const int ctas = ColumnCtas(/*whole_loads=*/true, HasNumber(problem.op));
    constexpr double kSlower = 1.05;
    if (kSlower * CostOf(shifted, problem, reduce, ctas, multiprocessors) <
        CostOf(plan, problem, reduce, kBulkCtas, multiprocessors)) {
      return shifted;
    }
  } else if (IsShifted(reduce, plan.inner, bytes, columns, aligned_base)) {
    PlanShiftedColumns(problem, reduce, multiprocessors, &plan);
  } else {
    PlanColumns(problem, reduce, aligned_base, multiprocessors, &plan);
  }
  return plan;
}

}  // namespace warpline
