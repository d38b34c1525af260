// Launchers of the transposition kernels. `in` and `out` need only the alignment of an element.
#ifndef WARPLINE_KERNELS_TRANSPOSE_KERNELS_H_
#define WARPLINE_KERNELS_TRANSPOSE_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda_variants.h"
#include "kernels/transpose/canonical.h"
#include "kernels/transpose/channels.h"
#include "kernels/transpose/joined_tiles.h"
#include "kernels/transpose/packed_box.h"
#include "kernels/transpose/plan.h"
#include "kernels/transpose/small_blocks.h"
#include "kernels/transpose/strided_copy.h"
#include "kernels/transpose/tile_walk.h"

namespace warpline {

// Uses one thread per element; neighbouring threads are at neighbouring steps of the walk. Elements have 1 to
// 16 bytes.
cudaError_t LaunchElementCopy(const StridedCopy& copy, std::size_t element_bytes, const void* in, void* out,
                              cudaStream_t stream);

// For problems without a transposition: copies bytes between any addresses.
cudaError_t LaunchFlatCopy(const void* in, void* out, std::int64_t bytes, cudaStream_t stream);

// For transpositions that keep the innermost axis innermost and contiguous: moves whole rows. The rank must
// be at least 2, and the problem not empty. Rows have at least 16 bytes, elements 1 to 16 bytes. `in` must be
// aligned to an element, `out` to 16 bytes. Numbers of elements and offsets must be less than
// FastDivisor::kMax.
cudaError_t LaunchRowCopy(const CanonicalTranspose& transpose, std::size_t element_bytes, const void* in,
                          void* out, cudaStream_t stream);

// For boxes of PlanPackedBox. Elements have 1 to 16 bytes.
cudaError_t LaunchPackedBox(const PackedBox& box, std::size_t element_bytes, const void* in, void* out,
                            cudaStream_t stream);

// For blocks of PlanSmallBlocks.
cudaError_t LaunchSmallBlocks(const SmallBlocks& blocks, std::size_t element_bytes,
                              const DeviceTraits& traits, const void* in, void* out, cudaStream_t stream);

// For transpositions that move the innermost axis, whose walk supports 16-byte vectors
// (TileWalk::TakesVectors), with `in` and `out` aligned to 16 bytes: moves tiles between the innermost axes
// of input and output. The problem must not be empty. Elements have 1 to 8 bytes.
cudaError_t LaunchTileTranspose(const CanonicalTranspose& transpose, std::size_t element_bytes,
                                const DeviceTraits& traits, const void* in, void* out, cudaStream_t stream);

// For walks that SuitChannels accepts.
cudaError_t LaunchChannels(const TileWalk& walk, std::size_t element_bytes, const void* in, void* out,
                           cudaStream_t stream);

// For walks for which ChannelWordsOf returns `side`. The whole input has `in_bytes` bytes.
cudaError_t LaunchChannelWords(ChannelSide side, const TileWalk& walk, std::size_t element_bytes,
                               std::int64_t in_bytes, const void* in, void* out, cudaStream_t stream);

// Same as LaunchTileTranspose, for sides and addresses without alignment: `walk` needs only unit strides. The
// problem must not be empty. Elements have 1 to 8 bytes. The whole input has `in_bytes` bytes.
cudaError_t LaunchOddTiles(const TileWalk& walk, std::size_t element_bytes, std::int64_t in_bytes,
                           const void* in, void* out, cudaStream_t stream);

// Same, for sides of several axes.
cudaError_t LaunchJoinedTiles(const JoinedTiles& tiles, std::size_t element_bytes, std::int64_t in_bytes,
                              const void* in, void* out, cudaStream_t stream);

// Launches the kernel of the plan. The addresses must have the alignment for which the plan was made.
cudaError_t LaunchPlan(const TransposePlan& plan, const DeviceTraits& traits, const void* in, void* out,
                       cudaStream_t stream);

// Rungs of the ladder that the server has; the file of each describes it.
CudaLaunch<TransposeProblem> LaunchTransposeNaive;
CudaLaunch<TransposeProblem> LaunchTransposePaddedVectorized;

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_KERNELS_H_
