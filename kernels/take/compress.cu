// Compress: selects the rows of a matrix for which a mask is not 0.
//
// A first kernel counts the selected rows of each tile. A second one adds up the counts. A third writes the
// numbers of the selected rows, and a fourth copies these rows. The mask is read twice
// (kernels/reads_twice.h); it has one byte per row. The limit is the copy of short rows that are far apart.
#include <algorithm>
#include <cstdint>

#include "kernels/align.h"
#include "kernels/ceil_div.h"
#include "kernels/launch_grids.h"
#include "kernels/take/kernels.h"

namespace warpline {
namespace {

constexpr int kThreads = 256;
constexpr int kMaskBytes = 16;  // per thread
constexpr int kTile = kThreads * kMaskBytes;
constexpr int kWarps = kThreads / 32;

// Returns a word in which bit i is set if the thread's row i of the tile is selected.
__device__ unsigned TakenBits(const std::uint8_t* mask, std::int64_t rows, std::int64_t first) {
  unsigned bits = 0;
  if (first + kMaskBytes <= rows && reinterpret_cast<std::uintptr_t>(mask + first) % kMaskBytes == 0) {
    const uint4 bytes = *reinterpret_cast<const uint4*>(mask + first);
    const unsigned words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
#pragma unroll
    for (int i = 0; i < kMaskBytes; ++i) bits |= ((words[i / 4] >> (8 * (i % 4)) & 0xff) != 0 ? 1u : 0u) << i;
    return bits;
  }
  for (int i = 0; i < kMaskBytes && first + i < rows; ++i) bits |= (mask[first + i] != 0 ? 1u : 0u) << i;
  return bits;
}

// Returns the sum of `mine` over all earlier threads. `total` becomes the sum over all threads.
__device__ unsigned SumBefore(unsigned mine, unsigned& total) {
  __shared__ unsigned warps[kWarps];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned sum = mine;
  for (unsigned by = 1; by < 32; by *= 2) {
    const unsigned other = __shfl_up_sync(~0u, sum, by);
    if (lane >= by) sum += other;
  }
  __syncthreads();  // the sums of a previous call have been read
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  unsigned before = 0;
  total = 0;
  for (unsigned i = 0; i < kWarps; ++i) {
    if (i < warp) before += warps[i];
    total += warps[i];
  }
  return before + sum - mine;
}

__global__ void __launch_bounds__(kThreads)
    CountTaken(const std::uint8_t* mask, std::int64_t rows, std::int64_t* tiles, std::int64_t first_block) {
  const std::int64_t tile = first_block + blockIdx.x;
  const unsigned bits = TakenBits(mask, rows, tile * kTile + threadIdx.x * kMaskBytes);
  unsigned total = 0;
  SumBefore(static_cast<unsigned>(__popc(bits)), total);
  if (threadIdx.x == 0) tiles[tile] = total;
}

// Replaces the count of each tile by the count of all earlier tiles.
__global__ void __launch_bounds__(kThreads)
    AddCounts(std::int64_t* tiles, std::int64_t count, std::int64_t* total_of_all) {
  std::int64_t before = 0;
  for (std::int64_t first = 0; first < count; first += kThreads) {
    const std::int64_t tile = first + threadIdx.x;
    // At most kTile rows of a tile are selected, so the sum over kThreads tiles fits.
    const auto mine = static_cast<unsigned>(tile < count ? tiles[tile] : 0);
    unsigned total = 0;
    const unsigned sum = SumBefore(mine, total);
    if (tile < count) tiles[tile] = before + sum;
    before += total;
  }
  if (threadIdx.x == 0) *total_of_all = before;
}

__global__ void __launch_bounds__(kThreads)
    NumberTaken(const std::uint8_t* mask, std::int64_t rows, const std::int64_t* tiles, std::uint32_t* taken,
                std::int64_t first_block) {
  const std::int64_t tile = first_block + blockIdx.x;
  const std::int64_t first = tile * kTile + threadIdx.x * kMaskBytes;
  const unsigned bits = TakenBits(mask, rows, first);
  unsigned total = 0;
  std::int64_t at = tiles[tile] + SumBefore(static_cast<unsigned>(__popc(bits)), total);
  for (unsigned left = bits; left != 0; left &= left - 1) {
    taken[at++] = static_cast<std::uint32_t>(first + __ffs(static_cast<int>(left)) - 1);
  }
}

// `width`: units per row.
template <typename Unit>
__global__ void __launch_bounds__(kThreads)
    CopyTaken(const Unit* __restrict__ x, const std::uint32_t* __restrict__ taken,
              const std::int64_t* __restrict__ count, std::int64_t width, Unit* __restrict__ y) {
  const std::int64_t units = *count * width, stride = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < units; i += stride) {
    if (width == 1) {
      y[i] = x[taken[i]];
      continue;
    }
    const std::int64_t row =
        units <= 0xffff'ffff ? static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(width) : i / width;
    y[i] = x[taken[row] * width + (i - row * width)];
  }
}

std::size_t TileBytes(const CompressProblem& problem) {
  return AlignUp(static_cast<std::size_t>(CeilDiv(problem.rows, kTile)) * sizeof(std::int64_t),
                 std::size_t{256});
}

}  // namespace

std::size_t CompressWorkspaceBytes(const CompressProblem& problem) {
  return TileBytes(problem) + static_cast<std::size_t>(problem.rows) * sizeof(std::uint32_t);
}

cudaError_t LaunchCompress(const CompressProblem& problem, const Operands& operands,
                           const CudaContext& context, cudaStream_t stream) {
  if (problem.rows > kMaxCompressRows || operands.workspace_bytes < CompressWorkspaceBytes(problem)) {
    return cudaErrorNotSupported;
  }
  const auto* mask = static_cast<const std::uint8_t*>(operands.in[1]);
  auto* tiles = static_cast<std::int64_t*>(operands.workspace);
  auto* taken =
      reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(operands.workspace) + TileBytes(problem));
  auto* count = static_cast<std::int64_t*>(operands.further[0]);
  const std::int64_t tile_count = CeilDiv(problem.rows, kTile);
  cudaError_t error = LaunchGrids(tile_count, [&](std::int64_t first, unsigned grid) {
    CountTaken<<<grid, kThreads, 0, stream>>>(mask, problem.rows, tiles, first);
  });
  if (error != cudaSuccess) return error;
  AddCounts<<<1, kThreads, 0, stream>>>(tiles, tile_count, count);
  if (error = cudaGetLastError(); error != cudaSuccess) return error;
  error = LaunchGrids(tile_count, [&](std::int64_t first, unsigned grid) {
    NumberTaken<<<grid, kThreads, 0, stream>>>(mask, problem.rows, tiles, taken, first);
  });
  if (error != cudaSuccess) return error;
  // The widest unit that divides the rows and both addresses.
  const auto row = static_cast<std::uintptr_t>(problem.width) * SizeOf(problem.dtype);
  const auto both =
      reinterpret_cast<std::uintptr_t>(operands.in[0]) | reinterpret_cast<std::uintptr_t>(operands.out);
  std::uintptr_t unit = 16;
  while ((row | both) % unit != 0) unit /= 2;
  const auto width = static_cast<std::int64_t>(row / unit);
  const int multiprocessors = std::max(context.traits.multiprocessors, 1);
  const std::int64_t most = CeilDiv(problem.rows * width, kThreads);
  const auto grid =
      static_cast<unsigned>(std::clamp<std::int64_t>(most, 1, std::int64_t{multiprocessors} * 16));
  const auto copy = [&]<typename Unit>(Unit*) {
    CopyTaken<<<grid, kThreads, 0, stream>>>(static_cast<const Unit*>(operands.in[0]), taken, count, width,
                                             static_cast<Unit*>(operands.out));
  };
  switch (unit) {
    case 1:
      copy(static_cast<std::uint8_t*>(nullptr));
      break;
    case 2:
      copy(static_cast<std::uint16_t*>(nullptr));
      break;
    case 4:
      copy(static_cast<std::uint32_t*>(nullptr));
      break;
    case 8:
      copy(static_cast<std::uint64_t*>(nullptr));
      break;
    default:
      copy(static_cast<uint4*>(nullptr));
  }
  return cudaGetLastError();
}

}  // namespace warpline
