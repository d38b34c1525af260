// Puts in three steps. The first clears one word for each element of x. The second stores in these words the
// last position whose index selects the element. The third writes each element of y once, from x or from the
// values.
//
// Limit: device memory. Each step moves 4 bytes more per element than a copy of x.
#include <cstdint>
#include <type_traits>

#include "kernels/axis_walk.h"
#include "kernels/bad_index.cuh"
#include "kernels/gpu/raw_vector.cuh"
#include "kernels/launch_grids.h"
#include "kernels/take/kernels.h"
#include "kernels/take_remainder.h"

namespace warpline {
namespace {

constexpr int kPutThreads = 256;

// Offsets of positions that are numbered along several axes. The innermost axis comes first.
struct WideWalk {
  int rank = 0;
  std::int64_t sizes[kMaxRank] = {}, strides[kMaxRank] = {};

  // Adds the next axis outwards. Merges it with the previous one if the two are contiguous.
  void Append(std::int64_t size, std::int64_t stride) {
    if (size == 1) return;
    if (rank > 0 && strides[rank - 1] * sizes[rank - 1] == stride) {
      sizes[rank - 1] *= size;
      return;
    }
    sizes[rank] = size;
    strides[rank] = stride;
    ++rank;
  }

  bool IsNarrow() const {
    std::int64_t count = 1, reach = 0;
    for (int i = 0; i < rank; ++i) {
      count *= sizes[i];
      reach += (sizes[i] - 1) * (strides[i] < 0 ? -strides[i] : strides[i]);
    }
    return count < FastDivisor::kMax && reach < FastDivisor::kMax;
  }

  AxisWalk Narrow() const {
    AxisWalk walk;
    for (int i = 0; i < rank; ++i) walk.Append(sizes[i], strides[i]);
    return walk;
  }
};

template <bool kWide>
using PutWalk = std::conditional_t<kWide, WideWalk, AxisWalk>;

// If the walk is narrow, the offset has 32 bits with a sign.
__device__ __forceinline__ std::int64_t SignedOffsetAt(const AxisWalk& walk, std::uint32_t place) {
  return static_cast<std::int32_t>(OffsetAt(walk, place));
}
__device__ __forceinline__ std::int64_t SignedOffsetAt(const WideWalk& walk, std::uint32_t place) {
  std::int64_t left = place, offset = 0;
#pragma unroll
  for (int i = 0; i < kMaxRank; ++i) {
    if (i >= walk.rank) break;
    offset += (i + 1 == walk.rank ? left : TakeRemainder(left, walk.sizes[i])) * walk.strides[i];
  }
  return offset;
}

// `targets` gives the offsets of the elements of x that index 0 selects. `axis_stride` is x's stride along
// the axis.
template <bool kWide>
struct MarkTask {
  PutWalk<kWide> targets, indices;
  std::int64_t axis_size = 0, axis_stride = 0;
  std::uint32_t places = 0;
  bool has_wide_indices = false;  // true for i64, false for i32
};

template <bool kWide>
__global__ void __launch_bounds__(kPutThreads)
    MarkWinners(const void* __restrict__ indices, std::uint32_t* __restrict__ winners,
                const __grid_constant__ MarkTask<kWide> task, const __grid_constant__ BadIndexReport report) {
  const std::int64_t place = std::int64_t{blockIdx.x} * kPutThreads + threadIdx.x;
  if (place >= task.places) return;
  const auto number = static_cast<std::uint32_t>(place);
  const std::int64_t offset = SignedOffsetAt(task.indices, number);
  const std::int64_t index = task.has_wide_indices ? static_cast<const std::int64_t*>(indices)[offset]
                                                   : static_cast<const std::int32_t*>(indices)[offset];
  const std::int64_t along = PlaceAlong(index, task.axis_size);
  if (along < 0) {
    ReportBadIndex(report, offset, index);
    return;
  }
  atomicMax(winners + SignedOffsetAt(task.targets, number) + along * task.axis_stride, number + 1);
}

// Each thread writes kSize neighbouring elements of y.
template <typename T, int kSize, bool kWide>
__global__ void __launch_bounds__(kPutThreads)
    WriteElements(const T* __restrict__ x, const T* __restrict__ values,
                  const std::uint32_t* __restrict__ winners, T* __restrict__ y,
                  const __grid_constant__ PutWalk<kWide> walk, std::int64_t count, std::int64_t first_block) {
  using Pack = RawVector<kSize* static_cast<int>(sizeof(T))>;
  using Winners = RawVector<kSize * 4>;
  const std::int64_t first =
      ((first_block + blockIdx.x) * kPutThreads + static_cast<std::int64_t>(threadIdx.x)) * kSize;
  if (first >= count) return;
  if (count - first < kSize) {
    for (std::int64_t i = first; i < count; ++i) {
      y[i] = winners[i] == 0 ? x[i] : values[SignedOffsetAt(walk, winners[i] - 1)];
    }
    return;
  }
  Pack pack = *reinterpret_cast<const Pack*>(x + first);
  const Winners winner = *reinterpret_cast<const Winners*>(winners + first);
  std::uint32_t any = 0;
#pragma unroll
  for (int i = 0; i < kSize; ++i) any |= winner.words[i];
  if (any != 0) {
    // Compute all offsets before the loads, so that the loads overlap.
    std::int64_t offsets[kSize];
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      offsets[i] = SignedOffsetAt(walk, winner.words[i] == 0 ? 0 : winner.words[i] - 1);
    }
    T elements[kSize];
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      elements[i] = Element<T>(pack, i);
      if (winner.words[i] != 0) elements[i] = values[offsets[i]];
    }
    pack = Pack{};
#pragma unroll
    for (int i = 0; i < kSize; ++i) SetElement(pack, i, elements[i]);
  }
  *reinterpret_cast<Pack*>(y + first) = pack;
}

bool IsAligned(const void* address, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

template <bool kWide>
PutWalk<kWide> WalkOf(const WideWalk& walk) {
  if constexpr (kWide) {
    return walk;
  } else {
    return walk.Narrow();
  }
}

template <typename T, bool kWide>
cudaError_t LaunchWrite(const WideWalk& wide_walk, std::int64_t count, const Operands& operands,
                        cudaStream_t stream) {
  const PutWalk<kWide> walk = WalkOf<kWide>(wide_walk);
  const auto* winners = static_cast<const std::uint32_t*>(operands.workspace);
  const auto launch = [&](auto* kernel, int size) {
    return LaunchGrids(
        CeilDiv(count, std::int64_t{kPutThreads} * size), [&](std::int64_t first, unsigned grid) {
          kernel<<<grid, kPutThreads, 0, stream>>>(static_cast<const T*>(operands.in[0]),
                                                   static_cast<const T*>(operands.in[2]), winners,
                                                   static_cast<T*>(operands.out), walk, count, first);
        });
  };
  constexpr int kSize = sizeof(T) <= 4 ? 4 : static_cast<int>(16 / sizeof(T));
  if (IsAligned(operands.in[0], kSize * sizeof(T)) && IsAligned(operands.out, kSize * sizeof(T)) &&
      IsAligned(winners, kSize * sizeof(std::uint32_t))) {
    return launch(&WriteElements<T, kSize, kWide>, kSize);
  }
  return launch(&WriteElements<T, 1, kWide>, 1);
}

template <typename T>
cudaError_t LaunchWrite(const WideWalk& walk, std::int64_t count, const Operands& operands,
                        cudaStream_t stream) {
  return walk.IsNarrow() ? LaunchWrite<T, false>(walk, count, operands, stream)
                         : LaunchWrite<T, true>(walk, count, operands, stream);
}

cudaError_t WriteResult(std::size_t element_bytes, const WideWalk& walk, std::int64_t count,
                        const Operands& operands, cudaStream_t stream) {
  switch (element_bytes) {
    case 1:
      return LaunchWrite<std::uint8_t>(walk, count, operands, stream);
    case 2:
      return LaunchWrite<std::uint16_t>(walk, count, operands, stream);
    case 4:
      return LaunchWrite<std::uint32_t>(walk, count, operands, stream);
    case 8:
      return LaunchWrite<std::uint64_t>(walk, count, operands, stream);
    case 16:
      return LaunchWrite<uint4>(walk, count, operands, stream);
    default:
      return cudaErrorNotSupported;
  }
}

template <bool kWide>
cudaError_t LaunchMark(const PutProblem& problem, const WideWalk& targets, const WideWalk& indices,
                       const Operands& operands, cudaStream_t stream) {
  const std::int64_t places = problem.index_shape.Count();
  const MarkTask<kWide> task{.targets = WalkOf<kWide>(targets),
                             .indices = WalkOf<kWide>(indices),
                             .axis_size = problem.shape[problem.axis],
                             .axis_stride = RowMajorStrides(problem.shape)[problem.axis],
                             .places = static_cast<std::uint32_t>(places),
                             .has_wide_indices = problem.index_dtype == DType::kI64};
  const auto blocks = static_cast<unsigned>(CeilDiv(places, kPutThreads));
  MarkWinners<kWide><<<blocks, kPutThreads, 0, stream>>>(
      operands.in[1], static_cast<std::uint32_t*>(operands.workspace), task, operands.bad_index);
  return cudaGetLastError();
}

}  // namespace

std::size_t PutWorkspaceBytes(const PutProblem& problem) {
  return static_cast<std::size_t>(problem.shape.Count()) * sizeof(std::uint32_t);
}

cudaError_t LaunchPut(const PutProblem& problem, const Operands& operands, const CudaContext&,
                      cudaStream_t stream) {
  const std::int64_t count = problem.shape.Count(), places = problem.index_shape.Count();
  if (places > kMaxPutPlaces) return cudaErrorNotSupported;
  const Strides x_strides = RowMajorStrides(problem.shape);
  WideWalk targets, indices, values;
  // Without positions no walk is used, and FastDivisor cannot divide by a size of 0.
  for (int i = problem.index_shape.rank - 1; places > 0 && i >= 0; --i) {
    targets.Append(problem.index_shape[i], i == problem.axis ? 0 : x_strides[i]);
    indices.Append(problem.index_shape[i], problem.index_strides[i]);
    values.Append(problem.index_shape[i], problem.value_strides[i]);
  }
  if (count > 0) {
    const cudaError_t error = cudaMemsetAsync(operands.workspace, 0, PutWorkspaceBytes(problem), stream);
    if (error != cudaSuccess) return error;
  }
  if (places > 0) {
    const cudaError_t error = targets.IsNarrow() && indices.IsNarrow()
                                  ? LaunchMark<false>(problem, targets, indices, operands, stream)
                                  : LaunchMark<true>(problem, targets, indices, operands, stream);
    if (error != cudaSuccess) return error;
  }
  return count == 0 ? cudaSuccess : WriteResult(SizeOf(problem.dtype), values, count, operands, stream);
}

}  // namespace warpline
