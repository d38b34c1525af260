// Takes: each thread moves several units of y. A unit is an element. If neighbouring elements of y are
// neighbours in x and share an index, a unit has as many bytes as the alignment allows.
//
// Limit: device memory for long runs. Single elements are limited by the sectors of x that they touch.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/bad_index.cuh"
#include "kernels/fast_divisor.h"
#include "kernels/launch_grids.h"
#include "kernels/take/kernels.h"
#include "kernels/take_remainder.h"

namespace warpline {
namespace {

constexpr int kTakeThreads = 256;
// Each thread waits for an index and then for a unit. Four units per thread hide these two latencies.
constexpr int kTakeUnits = 4;
constexpr std::uint64_t kMaxUnitBytes = 16;

struct TakeAxis {
  std::int64_t size = 1, x_stride = 0, index_stride = 0;
};

// A take in units. The innermost axis comes first. Strides of x are in units.
struct TakeLayout {
  int rank = 0;
  TakeAxis axes[kMaxRank] = {};
  std::int64_t axis_size = 0, axis_stride = 0;
  int unit_bytes = 1;

  std::int64_t Units() const {
    std::int64_t units = 1;
    for (int i = 0; i < rank; ++i) units *= axes[i].size;
    return units;
  }
};

// Removes axes of size 1. Merges neighbouring axes that are contiguous in x and in the indices.
TakeLayout FuseAxes(const TakeProblem& problem) {
  TakeLayout layout{.axis_size = problem.axis_size, .axis_stride = problem.axis_stride};
  for (int i = problem.shape.rank - 1; i >= 0; --i) {
    const TakeAxis axis{problem.shape[i], problem.x_strides[i], problem.index_strides[i]};
    if (axis.size == 1) continue;
    if (layout.rank > 0) {
      TakeAxis& inner = layout.axes[layout.rank - 1];
      if (inner.x_stride * inner.size == axis.x_stride &&
          inner.index_stride * inner.size == axis.index_stride) {
        inner.size *= axis.size;
        continue;
      }
    }
    layout.axes[layout.rank++] = axis;
  }
  return layout;
}

// Chooses the widest unit, and converts the innermost axis and the strides of x to units.
TakeLayout CountUnits(TakeLayout layout, std::int64_t element_bytes, const void* x, const void* y) {
  layout.unit_bytes = static_cast<int>(element_bytes);
  if (layout.rank == 0 || layout.axes[0].x_stride != 1 || layout.axes[0].index_stride != 0) return layout;
  // A unit must divide all of these numbers. Their lowest set bits determine it.
  std::uint64_t bits =
      kMaxUnitBytes | reinterpret_cast<std::uintptr_t>(x) | reinterpret_cast<std::uintptr_t>(y);
  bits |= static_cast<std::uint64_t>(layout.axes[0].size * element_bytes);
  bits |= static_cast<std::uint64_t>(layout.axis_stride * element_bytes);
  for (int i = 1; i < layout.rank; ++i) {
    bits |= static_cast<std::uint64_t>(layout.axes[i].x_stride * element_bytes);
  }
  const auto unit_bytes = static_cast<std::int64_t>(bits & (~bits + 1));
  layout.unit_bytes = static_cast<int>(unit_bytes);
  layout.axes[0].size = layout.axes[0].size * element_bytes / unit_bytes;
  layout.axis_stride = layout.axis_stride * element_bytes / unit_bytes;
  for (int i = 1; i < layout.rank; ++i) {
    layout.axes[i].x_stride = layout.axes[i].x_stride * element_bytes / unit_bytes;
  }
  if (layout.axes[0].size == 1) {
    std::copy(layout.axes + 1, layout.axes + layout.rank, layout.axes);
    --layout.rank;
  }
  return layout;
}

// Returns whether numbers of units and all offsets fit into 31 bits.
bool IsNarrow(const TakeLayout& layout) {
  std::int64_t x_reach = 0, index_reach = 0;
  for (int i = 0; i < layout.rank; ++i) {
    const TakeAxis& axis = layout.axes[i];
    x_reach += (axis.size - 1) * std::abs(axis.x_stride);
    index_reach += (axis.size - 1) * std::abs(axis.index_stride);
  }
  return layout.Units() < FastDivisor::kMax && x_reach < FastDivisor::kMax &&
         index_reach < FastDivisor::kMax && layout.axis_size < FastDivisor::kMax &&
         std::abs(layout.axis_stride) < FastDivisor::kMax;
}

// A take in the form that a kernel uses. 32-bit arithmetic needs a fraction of the instructions of 64-bit
// arithmetic.
template <bool kWide>
struct TakeWalk {
  using Count = std::conditional_t<kWide, std::int64_t, std::uint32_t>;
  using Offset = std::conditional_t<kWide, std::int64_t, std::int32_t>;
  using Divisor = std::conditional_t<kWide, std::int64_t, FastDivisor>;

  int rank = 0;
  bool has_wide_indices = false;  // true for i64, false for i32
  Count units = 0;
  Divisor sizes[kMaxRank] = {};
  Offset x_strides[kMaxRank] = {}, index_strides[kMaxRank] = {};
  Offset axis_stride = 0;
  std::int64_t axis_size = 0;

  TakeWalk(const TakeLayout& layout, bool wide_indices)
      : rank(layout.rank),
        has_wide_indices(wide_indices),
        units(static_cast<Count>(layout.Units())),
        axis_stride(static_cast<Offset>(layout.axis_stride)),
        axis_size(layout.axis_size) {
    for (int i = 0; i < rank; ++i) {
      sizes[i] = Divisor(layout.axes[i].size);
      x_strides[i] = static_cast<Offset>(layout.axes[i].x_stride);
      index_strides[i] = static_cast<Offset>(layout.axes[i].index_stride);
    }
  }
};

template <bool kWide>
struct TakePlace {
  typename TakeWalk<kWide>::Offset x = 0, index = 0;
};

// Returns the offsets for one unit of y: in the indices, and in x without the index. The loop is unrolled so
// that sizes and strides become operands of instructions.
template <bool kWide>
__device__ __forceinline__ TakePlace<kWide> PlaceOfUnit(const TakeWalk<kWide>& walk,
                                                        typename TakeWalk<kWide>::Count unit) {
  TakePlace<kWide> place;
#pragma unroll
  for (int i = 0; i < kMaxRank; ++i) {
    if (i >= walk.rank) break;
    const auto along = static_cast<typename TakeWalk<kWide>::Offset>(
        i + 1 == walk.rank ? unit : TakeRemainder(unit, walk.sizes[i]));
    place.x += along * walk.x_strides[i];
    place.index += along * walk.index_strides[i];
  }
  return place;
}

// Returns the offset of a unit in x.
template <bool kWide>
__device__ __forceinline__ std::int64_t OffsetInX(const TakeWalk<kWide>& walk, const TakePlace<kWide>& place,
                                                  std::int64_t along) {
  const auto factor = static_cast<typename TakeWalk<kWide>::Offset>(along);
  return place.x + static_cast<std::int64_t>(factor) * walk.axis_stride;
}

template <bool kWide>
__device__ __forceinline__ std::int64_t LoadIndex(const TakeWalk<kWide>& walk, const void* indices,
                                                  const TakePlace<kWide>& place) {
  return walk.has_wide_indices ? static_cast<const std::int64_t*>(indices)[place.index]
                               : static_cast<const std::int32_t*>(indices)[place.index];
}

// Moves one unit, or reports its index and writes 0. The old contents of y could belong to another client,
// and a result in a shared region is visible although the call fails.
template <typename Unit, bool kWide>
__device__ __forceinline__ void MoveUnit(const Unit* __restrict__ x, Unit* __restrict__ y,
                                         const TakeWalk<kWide>& walk, const BadIndexReport& report,
                                         typename TakeWalk<kWide>::Count unit, const TakePlace<kWide>& place,
                                         std::int64_t index) {
  const std::int64_t along = PlaceAlong(index, walk.axis_size);
  if (along >= 0) {
    y[unit] = x[OffsetInX(walk, place, along)];
  } else {
    y[unit] = Unit{};
    ReportBadIndex(report, place.index, index);
  }
}

template <typename Unit, bool kWide>
__global__ void __launch_bounds__(kTakeThreads)
    TakeUnits(const Unit* __restrict__ x, const void* __restrict__ indices, Unit* __restrict__ y,
              const __grid_constant__ TakeWalk<kWide> walk, const __grid_constant__ BadIndexReport report,
              std::int64_t first_block) {
  using Count = typename TakeWalk<kWide>::Count;
  const Count first =
      (static_cast<Count>(first_block) + static_cast<Count>(blockIdx.x)) * (kTakeThreads * kTakeUnits) +
      static_cast<Count>(threadIdx.x);
  if (first >= walk.units) return;
  if (walk.units - first <= (kTakeUnits - 1) * kTakeThreads) {
    for (Count unit = first; unit < walk.units; unit += kTakeThreads) {
      const TakePlace<kWide> place = PlaceOfUnit(walk, unit);
      MoveUnit(x, y, walk, report, unit, place, LoadIndex(walk, indices, place));
    }
    return;
  }
  // Issue all loads of a kind before the first result is used.
  TakePlace<kWide> places[kTakeUnits];
#pragma unroll
  for (int u = 0; u < kTakeUnits; ++u) {
    places[u] = PlaceOfUnit(walk, first + static_cast<Count>(u * kTakeThreads));
  }
  std::int64_t values[kTakeUnits];
  if (walk.has_wide_indices) {
#pragma unroll
    for (int u = 0; u < kTakeUnits; ++u)
      values[u] = static_cast<const std::int64_t*>(indices)[places[u].index];
  } else {
#pragma unroll
    for (int u = 0; u < kTakeUnits; ++u)
      values[u] = static_cast<const std::int32_t*>(indices)[places[u].index];
  }
  bool are_good = true;
  std::int64_t along[kTakeUnits];
#pragma unroll
  for (int u = 0; u < kTakeUnits; ++u) {
    along[u] = PlaceAlong(values[u], walk.axis_size);
    are_good = are_good && along[u] >= 0;
  }
  if (are_good) {
    Unit moved[kTakeUnits];
#pragma unroll
    for (int u = 0; u < kTakeUnits; ++u) moved[u] = x[OffsetInX(walk, places[u], along[u])];
#pragma unroll
    for (int u = 0; u < kTakeUnits; ++u) y[first + static_cast<Count>(u * kTakeThreads)] = moved[u];
    return;
  }
#pragma unroll
  for (int u = 0; u < kTakeUnits; ++u) {
    MoveUnit(x, y, walk, report, first + static_cast<Count>(u * kTakeThreads), places[u], values[u]);
  }
}

template <typename Unit, bool kWide>
cudaError_t LaunchUnits(const TakeLayout& layout, bool wide_indices, const Operands& operands,
                        cudaStream_t stream) {
  const TakeWalk<kWide> walk(layout, wide_indices);
  const std::int64_t blocks = CeilDiv(layout.Units(), kTakeThreads * kTakeUnits);
  return LaunchGrids(blocks, [&](std::int64_t first, unsigned grid) {
    TakeUnits<Unit, kWide><<<grid, kTakeThreads, 0, stream>>>(
        static_cast<const Unit*>(operands.in[0]), operands.in[1], static_cast<Unit*>(operands.out), walk,
        operands.bad_index, first);
  });
}

template <typename Unit>
cudaError_t LaunchUnits(const TakeLayout& layout, bool wide_indices, const Operands& operands,
                        cudaStream_t stream) {
  return IsNarrow(layout) ? LaunchUnits<Unit, false>(layout, wide_indices, operands, stream)
                          : LaunchUnits<Unit, true>(layout, wide_indices, operands, stream);
}

}  // namespace

cudaError_t LaunchTake(const TakeProblem& problem, const Operands& operands, const CudaContext&,
                       cudaStream_t stream) {
  if (problem.shape.Count() == 0) return cudaSuccess;
  const TakeLayout layout = CountUnits(FuseAxes(problem), static_cast<std::int64_t>(SizeOf(problem.dtype)),
                                       operands.in[0], operands.out);
  const bool wide_indices = problem.index_dtype == DType::kI64;
  switch (layout.unit_bytes) {
    case 1:
      return LaunchUnits<std::uint8_t>(layout, wide_indices, operands, stream);
    case 2:
      return LaunchUnits<std::uint16_t>(layout, wide_indices, operands, stream);
    case 4:
      return LaunchUnits<std::uint32_t>(layout, wide_indices, operands, stream);
    case 8:
      return LaunchUnits<std::uint64_t>(layout, wide_indices, operands, stream);
    case 16:
      return LaunchUnits<uint4>(layout, wide_indices, operands, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline
