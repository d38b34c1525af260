// Divides a reduction among threads for the server's choice. It is a pure function, so that the requested
// workspace and the launch agree. The rungs of the ladder use the simpler rung_plan.h.
#ifndef WARPLINE_KERNELS_REDUCE_VECTOR_PLAN_H_
#define WARPLINE_KERNELS_REDUCE_VECTOR_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/reduce/canonical.h"
#include "kernels/variant.h"

namespace warpline {

inline constexpr int kVectorThreads = 256;
inline constexpr int kRowLoads = 4;  // 16-byte loads that a thread of kRows has in flight
inline constexpr int kRowCtas = 4;   // per multiprocessor; one less if a row needs more than one number
inline constexpr int kFewRowsCtas = 5;
// Bytes of short rows that a CTA processes in shared memory, unless eight rows have more.
inline constexpr int kPackedBytes = 16384;

// CTAs of the column kernels per multiprocessor: one more if threads have free registers.
constexpr int ColumnCtas(bool whole_loads, bool has_number) { return whole_loads && has_number ? 4 : 3; }

// Maximum bytes of a block of columns that goes through shared memory as a whole, and the shared memory for
// it. A multiprocessor of an H100 holds two or three of the largest blocks; one of sm_86, sm_89 and sm_120
// holds one. A block may begin at any byte of a 16-byte unit.
inline constexpr int kPackedBlockBytes = 73728, kPackedSharedBytes = kPackedBlockBytes + 32;

// Limits for bulk copies by the device: CTAs per multiprocessor, and maximum threads of a CTA. The ring of a
// CTA in shared memory has kBulkStages stages, each with kBulkStageBytes bytes and at most kMaxBulkRows rows.
// On sm_120 one CTA uses all the shared memory of a multiprocessor.
inline constexpr int kBulkCtas = 2, kMaxBulkThreads = 384;
inline constexpr int kBulkStages = 3, kBulkStageBytes = 32768, kMaxBulkRows = 32;
inline constexpr int kBulkSharedBytes = kBulkStages * kBulkStageBytes;

// Shapes of a plan: which threads process which elements.
//
// kRows: the elements of a result are contiguous, in one run or in several that are whole vectors. `lanes`
// threads process 16 bytes each in turn.
//
// kRuns: the elements of a result are contiguous in several runs, which may be unaligned to vectors. A group
// of the `lanes` threads processes a run, or a piece of it, and then another one.
//
// kPackedRows: rows are short and contiguous. A CTA copies whole rows into shared memory, where `lanes`
// threads process one row after another.
//
// kColumns: neighbouring results are contiguous in memory. A thread has ColumnsOf of them, `lanes` threads
// are side by side, and the other threads of the CTA share the elements. If a thread's results cannot be
// loaded at once, they are `lanes` apart, so that neighbouring threads still have neighbouring results.
//
// kFewRows: same as kColumns if loads are whole, but a thread has 16 contiguous bytes of columns and all of
// their elements.
//
// kShiftedColumns: same as kColumns if rows are unaligned. A thread loads vectors that begin a few columns
// before its own, the same few in all of its rows.
//
// kBulkColumns: same as kColumns if rows are unaligned and the device itself copies them. CTAs process
// several tiles.
//
// kFlatColumns: same as kColumns if few results are contiguous, so that all elements of a block are
// contiguous. A thread processes packs in steps that are multiples of a row, so that all its packs have the
// same columns.
//
// kPackedColumns: many contiguous blocks of columns. A CTA copies whole blocks into shared memory, where
// `lanes` threads share a result, or one thread computes one result after another.
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
inline constexpr int kReduceShapes = static_cast<int>(ReduceShape::kPackedColumns) + 1;
constexpr std::string_view Name(ReduceShape shape) {
  switch (shape) {
    case ReduceShape::kRows:
      return "rows";
    case ReduceShape::kRuns:
      return "runs";
    case ReduceShape::kPackedRows:
      return "packed_rows";
    case ReduceShape::kColumns:
      return "columns";
    case ReduceShape::kFewRows:
      return "few_rows";
    case ReduceShape::kShiftedColumns:
      return "shifted_columns";
    case ReduceShape::kBulkColumns:
      return "bulk_columns";
    case ReduceShape::kFlatColumns:
      return "flat_columns";
    case ReduceShape::kPackedColumns:
      return "packed_columns";
  }
  return "";
}

// Which kernels handle a problem: they are compiled for all element types with the same kind of number.
enum class NumberClass : std::uint8_t { kF32, kF64, kI32, kU32, kI64, kU64 };
NumberClass NumberClassOf(DType dtype);

// The number of neighbouring results of a thread.
constexpr int ColumnsOf(NumberClass numbers) {
  return numbers == NumberClass::kF32 || numbers == NumberClass::kI32 || numbers == NumberClass::kU32 ? 4 : 2;
}

struct VectorPlan {
  ReduceShape shape = ReduceShape::kRows;
  // True if loads are whole: 16 bytes of rows, ColumnsOf elements of columns. Otherwise rows begin and end
  // with single elements, and columns are loaded element by element. Runs, shifted columns and flat blocks
  // have whole loads even if they are unaligned.
  bool aligned = true;
  int lanes = kVectorThreads;    // for kFlatColumns: active threads
  int threads = kVectorThreads;  // per CTA; for kFlatColumns the active threads rounded up to warps
  std::int64_t inner = 1;        // for columns: number of results that are contiguous in memory
  std::int64_t results_per_cta = 1;
  std::int64_t tiles = 0;  // CTAs / split
  // The steps of each result, the steps that one CTA takes of each of its results, and the number of CTAs
  // that share them. A step is a 16-byte vector of a row, a piece of a run, or an element of a column. In a
  // flat block it is a step of all threads.
  std::int64_t steps = 0, chunk = 0;
  int split = 1;
  int rows_per_stage = 0, pitch = 0;  // for kBulkColumns; pitch: bytes from row to row in a stage
  // For kRuns: the number of threads that load neighbouring vectors, and the pieces of a run. A piece has
  // kRowLoads vectors for each of these threads. `extent` is the number of elements from the first of the
  // input to its last.
  int group = 1;
  std::int64_t pieces = 1, extent = 0;

  // Returns the shared memory of a CTA for packed results, which have `result_bytes` bytes of elements each.
  // They may begin at any of the first 16 bytes.
  std::size_t SharedBytes(std::int64_t result_bytes) const {
    if (shape == ReduceShape::kBulkColumns) return kBulkSharedBytes;
    return shape == ReduceShape::kPackedRows || shape == ReduceShape::kPackedColumns
               ? static_cast<std::size_t>(results_per_cta * result_bytes + 31) / 16 * 16
               : 0;
  }
  std::size_t WorkspaceBytes(std::int64_t results) const;
};

// Plans for this shape, whether fast or not. Returns nothing if it does not support the problem.
std::optional<VectorPlan> PlanVectorsBy(ReduceShape shape, const ReduceProblem& problem,
                                        const CanonicalReduce& reduce, bool aligned_base,
                                        const DeviceTraits& traits);

// `aligned_base`: whether the input begins at a multiple of 16 bytes. Devices before sm_90 cannot copy rows.
VectorPlan PlanVectors(const ReduceProblem& problem, const CanonicalReduce& reduce, bool aligned_base,
                       const DeviceTraits& traits);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_VECTOR_PLAN_H_
