// How the server's choice divides a reduction among threads: a pure function, so that the workspace it asks
// for and the launch agree. The rungs of the ladder have the plainer plan.h.
#ifndef WARPLINE_KERNELS_REDUCE_VECTOR_PLAN_H_
#define WARPLINE_KERNELS_REDUCE_VECTOR_PLAN_H_

#include <cstddef>
#include <cstdint>

#include "kernels/reduce/canonical.h"
#include "kernels/variant.h"

namespace warpline {

inline constexpr int kVectorThreads = 256;
inline constexpr int kRowLoads = 4;  // of 16 bytes, that a thread of kRows has in flight
inline constexpr int kRowCtas = 4;   // a multiprocessor, one less where more than a number is kept of a row
inline constexpr int kFewRowsCtas = 5;
// Bytes of short rows that a CTA takes through shared memory, unless eight rows have more.
inline constexpr int kPackedBytes = 16384;

// Of columns, a multiprocessor: one more where threads have registers to spare.
constexpr int ColumnCtas(bool whole_loads, bool has_number) { return whole_loads && has_number ? 4 : 3; }

// Of a block of columns that goes through shared memory whole. Of an H100 a multiprocessor holds two or three
// of the largest, one of sm_86, 89 and 120. A block may begin anywhere in 16 bytes.
inline constexpr int kPackedBlockBytes = 73728, kPackedSharedBytes = kPackedBlockBytes + 32;

// Where the device copies rows by itself: CTAs a multiprocessor, most threads of one, and of its ring in
// shared memory the stages, their bytes and most rows. Of sm_120 one CTA has all shared memory of a
// multiprocessor.
inline constexpr int kBulkCtas = 2, kMostBulkThreads = 384;
inline constexpr int kBulkStages = 3, kBulkStageBytes = 32768, kMostBulkRows = 32;
inline constexpr int kBulkSharedBytes = kBulkStages * kBulkStageBytes;

// Who takes what.
//
// kRows: the elements of a result are neighbours, in one run or in several that are whole vectors; `lanes`
// threads take 16 bytes each in turn.
//
// kRuns: they are neighbours in several runs, which begin anywhere in a vector; a group of the `lanes`
// threads takes a run, or a piece of it, and then another one.
//
// kPackedRows: rows are short and follow each other; a CTA copies whole rows into shared memory, where
// `lanes` threads take one row after the other.
//
// kColumns: neighbouring results are neighbours in memory; a thread takes ColumnsOf of them, `lanes` threads
// stand side by side, and the others of the CTA share the elements. Where a thread's results cannot be loaded
// at once, they are `lanes` apart, so that neighbouring threads still are.
//
// kFewRows: as kColumns where loads are whole, a thread takes 16 bytes side by side and all of their
// elements.
//
// kShiftedColumns: as kColumns where rows begin anywhere; a thread takes vectors that begin a few columns
// before its own, the same few in all of its rows.
//
// kBulkColumns: as kColumns where rows begin anywhere and the device copies them by itself; CTAs go from tile
// to tile.
//
// kFlatColumns: as kColumns where few results lie side by side, so that all elements of a block follow each
// other: a thread takes packs in steps that are multiples of a row, and so of the same columns.
//
// kPackedColumns: many blocks of columns follow each other; a CTA copies whole blocks into shared memory,
// where `lanes` threads share a result, or one thread takes one after the other.
enum class ReduceShape : std::uint8_t {
  kRows,
  kRuns,
  kPackedRows,
  kColumns,
  kFewRows,
  kShiftedColumns,
  kBulkColumns,
  kFlatColumns,
  kPackedColumns
};

// Which kernels take a problem: they are compiled for all element types that are the same kind of number.
enum class NumberClass : std::uint8_t { kF32, kF64, kI32, kU32, kI64, kU64 };
NumberClass NumberClassOf(DType dtype);

// Neighbouring results of a thread.
constexpr int ColumnsOf(NumberClass numbers) {
  return numbers == NumberClass::kF32 || numbers == NumberClass::kI32 || numbers == NumberClass::kU32 ? 4 : 2;
}

struct VectorPlan {
  ReduceShape shape = ReduceShape::kRows;
  // Whether loads are whole: 16 bytes of rows, ColumnsOf elements of columns. Otherwise rows begin and end
  // with single elements, and columns are loaded in such. Runs, shifted columns and flat blocks have whole
  // loads wherever they begin.
  bool aligned = true;
  int lanes = kVectorThreads;    // of kFlatColumns: threads at work
  int threads = kVectorThreads;  // of a CTA; of kFlatColumns whole warps of those at work
  std::int64_t inner = 1;        // of columns: results side by side in memory
  std::int64_t results_per_cta = 1;
  std::int64_t tiles = 0;  // CTAs / split
  // What a CTA takes of each of its results, and how many CTAs share them: in 16-byte vectors of a row, in
  // pieces of runs, in elements of a column, in steps of all threads through a flat block.
  std::int64_t steps = 0, chunk = 0;
  int split = 1;
  int rows_per_stage = 0, pitch = 0;  // of kBulkColumns; the bytes from row to row in a stage
  // Of kRuns: threads that take neighbouring vectors, the pieces of a run that have kRowLoads for each of
  // them, and the elements from the first of the input to its last.
  int group = 1;
  std::int64_t pieces = 1, extent = 0;

  // Of packed results with so many bytes of elements each, which may begin anywhere in the first 16.
  std::size_t SharedBytes(std::int64_t result_bytes) const {
    if (shape == ReduceShape::kBulkColumns) return kBulkSharedBytes;
    return shape == ReduceShape::kPackedRows || shape == ReduceShape::kPackedColumns
               ? static_cast<std::size_t>(results_per_cta * result_bytes + 31) / 16 * 16
               : 0;
  }
  std::size_t WorkspaceBytes(std::int64_t results) const;
};

// `aligned_base`: whether the input begins at a multiple of 16 bytes. Devices before sm_90 copy no rows.
VectorPlan PlanVectors(const ReduceProblem& problem, const CanonicalReduce& reduce, bool aligned_base,
                       const DeviceTraits& traits);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_VECTOR_PLAN_H_
