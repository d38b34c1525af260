// Variant `channels`: matrices with few columns or rows (channels.h) and elements of 1 or 2 bytes, such as
// images, where these are the channels of a pixel. A thread takes a group of pixels that has 16 bytes in each
// plane. On both sides, neighbouring lanes access global memory in 16-byte vectors. Interleaved pixels go
// through shared memory, from which each lane reads its own.
//
// Limit: device memory.
#include <cuda_pipeline_primitives.h>

#include <type_traits>
#include <utility>

#include "kernels/launch_grids.h"
#include "kernels/transpose/channels.h"
#include "kernels/transpose/interleave.h"
#include "kernels/transpose/kernels.h"

namespace warpline {
namespace {

constexpr int kLanes = 32;

// The threads of a CTA. Each has a group of pixels in shared memory.
template <int kChannels>
inline constexpr int kGroups = kChannels > 8 ? 128 : 256;

// A warp's part of a matrix: some consecutive groups of pixels.
struct WarpShare {
  std::int64_t in = 0, out = 0;  // position of the first pixel in input and output, in elements
  int groups = 0;                // zero or negative: nothing to do
  int lane = 0;                  // also the index of this lane's group
};

// kSplits: x is the channel axis and y the pixel axis; otherwise the reverse.
template <int kBytes, int kChannels, bool kSplits>
__device__ WarpShare ShareOf(const TileWalk& walk, std::int64_t tile) {
  constexpr int kPixels = PixelGroup<kBytes, kChannels>::kPixels;
  constexpr int kPixelsOfCta = kGroups<kChannels> * kPixels;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kLanes;
  const TileOrigin origin =
      LocateTile(walk, tile, kSplits ? kChannels : kPixelsOfCta, kSplits ? kPixelsOfCta : kChannels);
  const std::int64_t pixel = (kSplits ? origin.y : origin.x) + warp * kLanes * kPixels;
  const std::int64_t pixels = kSplits ? walk.ny : walk.nx;
  return {.in = origin.in + pixel * (kSplits ? kChannels : 1),
          .out = origin.out + pixel * (kSplits ? 1 : kChannels),
          .groups = static_cast<int>(min(std::int64_t{kLanes}, (pixels - pixel) / kPixels)),
          .lane = thread % kLanes};
}

// Returns the chunks of the warp's groups in the CTA's shared memory.
template <int kChannels>
__device__ Chunk* ChunksOfWarp(Chunk* shared) {
  return shared + threadIdx.x / kLanes * kLanes * kChannels;
}

// x is the channel axis, whose elements are contiguous in the input; y is the pixel axis.
template <int kBytes, int kChannels>
__global__ void __launch_bounds__(kGroups<kChannels>)
    SplitChannels(const char* __restrict__ in, char* __restrict__ out, const __grid_constant__ TileWalk walk,
                  std::int64_t first_tile) {
  using Group = PixelGroup<kBytes, kChannels>;
  __shared__ Chunk shared[kGroups<kChannels> * kChannels];
  const WarpShare share = ShareOf<kBytes, kChannels, true>(walk, first_tile + blockIdx.x);
  if (share.groups <= 0) return;
  Chunk* chunks = ChunksOfWarp<kChannels>(shared);
  const auto* from = reinterpret_cast<const Chunk*>(in + share.in * kBytes);
#pragma unroll
  for (int i = 0; i < kChannels; ++i) {
    const int chunk = i * kLanes + share.lane;
    if (chunk < share.groups * kChannels) {
      __pipeline_memcpy_async(&chunks[PlaceOfChunk<kChannels>(chunk)], &from[chunk], sizeof(Chunk));
    }
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncwarp();
  if (share.lane >= share.groups) return;
  Chunk interleaved[kChannels], planar[kChannels];
#pragma unroll
  for (int i = 0; i < kChannels; ++i) {
    interleaved[i] = chunks[PlaceOfChunk<kChannels>(share.lane * kChannels + i)];
  }
  Group::Deinterleave(interleaved, planar);
  char* to = out + (share.out + share.lane * Group::kPixels) * kBytes;
#pragma unroll
  for (int i = 0; i < kChannels; ++i) {
    *reinterpret_cast<Chunk*>(to + i * walk.out_stride_x * kBytes) = planar[i];
  }
}

// The reverse: x is the pixel axis, y the channel axis. The channels become contiguous.
template <int kBytes, int kChannels>
__global__ void __launch_bounds__(kGroups<kChannels>)
    JoinChannels(const char* __restrict__ in, char* __restrict__ out, const __grid_constant__ TileWalk walk,
                 std::int64_t first_tile) {
  using Group = PixelGroup<kBytes, kChannels>;
  __shared__ Chunk shared[kGroups<kChannels> * kChannels];
  const WarpShare share = ShareOf<kBytes, kChannels, false>(walk, first_tile + blockIdx.x);
  if (share.groups <= 0) return;
  Chunk* chunks = ChunksOfWarp<kChannels>(shared);
  if (share.lane < share.groups) {
    const char* from = in + (share.in + share.lane * Group::kPixels) * kBytes;
    Chunk interleaved[kChannels], planar[kChannels];
#pragma unroll
    for (int i = 0; i < kChannels; ++i) {
      planar[i] = *reinterpret_cast<const Chunk*>(from + i * walk.in_stride_y * kBytes);
    }
    Group::Interleave(planar, interleaved);
#pragma unroll
    for (int i = 0; i < kChannels; ++i) {
      chunks[PlaceOfChunk<kChannels>(share.lane * kChannels + i)] = interleaved[i];
    }
  }
  __syncwarp();
  auto* to = reinterpret_cast<Chunk*>(out + share.out * kBytes);
#pragma unroll
  for (int i = 0; i < kChannels; ++i) {
    const int chunk = i * kLanes + share.lane;
    if (chunk < share.groups * kChannels) to[chunk] = chunks[PlaceOfChunk<kChannels>(chunk)];
  }
}

template <int kBytes, int kChannels>
cudaError_t Launch(TileWalk walk, bool splits, const void* in, void* out, cudaStream_t stream) {
  constexpr int kGroupsOfCta = kGroups<kChannels>;
  constexpr std::int64_t kPixels = std::int64_t{kGroupsOfCta} * PixelGroup<kBytes, kChannels>::kPixels;
  splits ? walk.CutInto(kChannels, kPixels) : walk.CutInto(kPixels, kChannels);
  auto* kernel = splits ? &SplitChannels<kBytes, kChannels> : &JoinChannels<kBytes, kChannels>;
  return LaunchGrids(walk.Tiles(), [&](std::int64_t first, unsigned grid) {
    kernel<<<grid, kGroupsOfCta, 0, stream>>>(static_cast<const char*>(in), static_cast<char*>(out), walk,
                                              first);
  });
}

template <int kBytes, int... kCounts>
cudaError_t LaunchOf(std::integer_sequence<int, kCounts...>, const TileWalk& walk, const void* in, void* out,
                     cudaStream_t stream) {
  const bool splits = ChannelSideOf(walk) == ChannelSide::kSplit;
  const std::int64_t channels = splits ? walk.nx : walk.ny;
  cudaError_t error = cudaErrorNotSupported;
  const auto launch_if = [&]<int kChannels>(std::integral_constant<int, kChannels>) {
    if (channels == kChannels) error = Launch<kBytes, kChannels>(walk, splits, in, out, stream);
  };
  (launch_if(std::integral_constant<int, kCounts>()), ...);
  return error;
}

}  // namespace

cudaError_t LaunchChannels(const TileWalk& walk, std::size_t element_bytes, const void* in, void* out,
                           cudaStream_t stream) {
  switch (element_bytes) {
    case 1:
      return LaunchOf<1>(ChannelCounts(), walk, in, out, stream);
    case 2:
      return LaunchOf<2>(ChannelCounts(), walk, in, out, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline
