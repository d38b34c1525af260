// Variant `swizzled_packed`, matrices of 2, 3, 4, 8 or 16 columns or rows of 1 or 2 bytes an element: images,
// whose pixels have as many channels. A thread takes a group of pixels whose planes are 16 bytes each. Global
// memory is accessed in 16-byte vectors by neighbouring lanes on both sides: interleaved pixels go through
// shared memory, where each lane finds its own.
//
// Limit: device memory.
#include <cuda_pipeline_primitives.h>

#include "kernels/launch_grids.h"
#include "kernels/transpose/interleave.h"
#include "kernels/transpose/kernels.h"
#include "kernels/transpose/tile_walk.h"

namespace warpline {
namespace {

constexpr int kLanes = 32;

// Threads of a CTA, each with a group of pixels in shared memory.
template <int kChannels>
inline constexpr int kGroups = kChannels > 8 ? 128 : 256;

// What a warp has of a matrix: groups [0, groups) from `pixel` on.
struct WarpShare {
  std::int64_t pixel = 0;
  int groups = 0, group = 0;  // how many, and which of them is this lane's
};

template <int kBytes, int kChannels>
__device__ WarpShare ShareOf(std::int64_t first_pixel, std::int64_t pixels) {
  constexpr int kPixels = PixelGroup<kBytes, kChannels>::kPixels;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kLanes;
  WarpShare share;
  share.pixel = first_pixel + warp * kLanes * kPixels;
  share.groups = static_cast<int>(min(std::int64_t{kLanes}, (pixels - share.pixel) / kPixels));
  share.group = thread % kLanes;
  return share;
}

// x are the channels, of which a pixel's are neighbours in the input; y are the pixels.
template <int kBytes, int kChannels>
__global__ void __launch_bounds__(kGroups<kChannels>)
    SplitChannels(const char* __restrict__ in, char* __restrict__ out, const __grid_constant__ TileWalk walk,
                  std::int64_t first_tile) {
  using Group = PixelGroup<kBytes, kChannels>;
  __shared__ Chunk shared[kGroups<kChannels> * kChannels];
  const TileOrigin origin =
      LocateTile(walk, first_tile + blockIdx.x, kChannels, kGroups<kChannels> * Group::kPixels);
  const WarpShare share = ShareOf<kBytes, kChannels>(origin.y, walk.ny);
  if (share.groups <= 0) return;
  Chunk* chunks = shared + threadIdx.x / kLanes * kLanes * kChannels;
  const auto* from = reinterpret_cast<const Chunk*>(in + (origin.in + share.pixel * kChannels) * kBytes);
#pragma unroll
  for (int i = 0; i < kChannels; ++i) {
    const int chunk = i * kLanes + share.group;
    if (chunk < share.groups * kChannels) {
      __pipeline_memcpy_async(&chunks[PlaceOfChunk<kChannels>(chunk)], &from[chunk], sizeof(Chunk));
    }
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncwarp();
  if (share.group >= share.groups) return;
  Chunk interleaved[kChannels], planar[kChannels];
#pragma unroll
  for (int i = 0; i < kChannels; ++i)
    interleaved[i] = chunks[PlaceOfChunk<kChannels>(share.group * kChannels + i)];
  Group::Deinterleave(interleaved, planar);
  char* to = out + (origin.out + share.pixel + share.group * Group::kPixels) * kBytes;
#pragma unroll
  for (int i = 0; i < kChannels; ++i) {
    *reinterpret_cast<Chunk*>(to + i * walk.out_stride_x * kBytes) = planar[i];
  }
}

// The other way round: x are the pixels, and y the channels, which become neighbours.
template <int kBytes, int kChannels>
__global__ void __launch_bounds__(kGroups<kChannels>)
    JoinChannels(const char* __restrict__ in, char* __restrict__ out, const __grid_constant__ TileWalk walk,
                 std::int64_t first_tile) {
  using Group = PixelGroup<kBytes, kChannels>;
  __shared__ Chunk shared[kGroups<kChannels> * kChannels];
  const TileOrigin origin =
      LocateTile(walk, first_tile + blockIdx.x, kGroups<kChannels> * Group::kPixels, kChannels);
  const WarpShare share = ShareOf<kBytes, kChannels>(origin.x, walk.nx);
  if (share.groups <= 0) return;
  Chunk* chunks = shared + threadIdx.x / kLanes * kLanes * kChannels;
  if (share.group < share.groups) {
    const char* from = in + (origin.in + share.pixel + share.group * Group::kPixels) * kBytes;
    Chunk interleaved[kChannels], planar[kChannels];
#pragma unroll
    for (int i = 0; i < kChannels; ++i) {
      planar[i] = *reinterpret_cast<const Chunk*>(from + i * walk.in_stride_y * kBytes);
    }
    Group::Interleave(planar, interleaved);
#pragma unroll
    for (int i = 0; i < kChannels; ++i)
      chunks[PlaceOfChunk<kChannels>(share.group * kChannels + i)] = interleaved[i];
  }
  __syncwarp();
  auto* to = reinterpret_cast<Chunk*>(out + (origin.out + share.pixel * kChannels) * kBytes);
#pragma unroll
  for (int i = 0; i < kChannels; ++i) {
    const int chunk = i * kLanes + share.group;
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

template <int kBytes>
cudaError_t LaunchOf(const TileWalk& walk, const void* in, void* out, cudaStream_t stream) {
  const bool splits = SplitsChannels(walk);
  switch (splits ? walk.nx : walk.ny) {
    case 2:
      return Launch<kBytes, 2>(walk, splits, in, out, stream);
    case 3:
      return Launch<kBytes, 3>(walk, splits, in, out, stream);
    case 4:
      return Launch<kBytes, 4>(walk, splits, in, out, stream);
    case 8:
      return Launch<kBytes, 8>(walk, splits, in, out, stream);
    case 16:
      return Launch<kBytes, 16>(walk, splits, in, out, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace

cudaError_t LaunchChannels(const TileWalk& walk, std::size_t element_bytes, const void* in, void* out,
                           cudaStream_t stream) {
  switch (element_bytes) {
    case 1:
      return LaunchOf<1>(walk, in, out, stream);
    case 2:
      return LaunchOf<2>(walk, in, out, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline
