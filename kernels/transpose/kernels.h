// Launchers of the transposition kernels. `in` and `out` need the alignment of an element only.
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

// One thread an element, neighbouring threads at neighbouring steps of the walk. Elements of 1 to 16 bytes.
cudaError_t LaunchElementCopy(const StridedCopy& copy, std::size_t element_bytes, const void* in, void* out,
                              cudaStream_t stream);

// For none: copies bytes from any address to any.
cudaError_t LaunchFlatCopy(const void* in, void* out, std::int64_t bytes, cudaStream_t stream);

// For a transposition that leaves the innermost axis innermost, and contiguous: moves whole rows. Rank >= 2,
// not empty; rows of 16 bytes or more, of elements of 1 to 16 bytes, to which `in` is aligned, and `out` to
// 16 bytes. Less than FastDivisor::kMax elements, and offsets.
cudaError_t LaunchRowCopy(const CanonicalTranspose& transpose, std::size_t element_bytes, const void* in,
                          void* out, cudaStream_t stream);

// For boxes of PlanPackedBox. Elements of 1 to 16 bytes.
cudaError_t LaunchPackedBox(const PackedBox& box, std::size_t element_bytes, const void* in, void* out,
                            cudaStream_t stream);

// For boxes that SuitEqualBoxes accepts: elements of 1, 2 or 4 bytes. `in` and `out` are 4-byte aligned.
cudaError_t LaunchEqualBoxes(const PackedBox& box, std::size_t element_bytes, int multiprocessors,
                             const void* in, void* out, cudaStream_t stream);

// For blocks of PlanSmallBlocks.
cudaError_t LaunchSmallBlocks(const SmallBlocks& blocks, std::size_t element_bytes,
                              const DeviceTraits& traits, const void* in, void* out, cudaStream_t stream);

// For one that does not, and whose walk takes vectors of 16 bytes (TileWalk::TakesVectors), to which `in` and
// `out` are aligned: moves tiles between the innermost axes of input and output. Not empty; elements of 1 to
// 8 bytes.
cudaError_t LaunchTileTranspose(const CanonicalTranspose& transpose, std::size_t element_bytes,
                                const DeviceTraits& traits, const void* in, void* out, cudaStream_t stream);

// For walks of SuitChannels.
cudaError_t LaunchChannels(const TileWalk& walk, std::size_t element_bytes, const void* in, void* out,
                           cudaStream_t stream);

// For walks of which ChannelWordsOf is `side`; the input has `in_bytes` in all.
cudaError_t LaunchChannelWords(ChannelSide side, const TileWalk& walk, std::size_t element_bytes,
                               std::int64_t in_bytes, const void* in, void* out, cudaStream_t stream);

// Does what LaunchTileTranspose does, for sides and addresses that are odd: `walk` needs only unit strides.
// The problem is not empty. Elements have 1 to 8 bytes. The input has `in_bytes` in all.
cudaError_t LaunchOddTiles(const TileWalk& walk, std::size_t element_bytes, std::int64_t in_bytes,
                           const void* in, void* out, cudaStream_t stream);

// The same where sides are several axes.
cudaError_t LaunchJoinedTiles(const JoinedTiles& tiles, std::size_t element_bytes, std::int64_t in_bytes,
                              const void* in, void* out, cudaStream_t stream);

// Launches the kernel of the plan. The addresses have the alignment that the plan was made for.
cudaError_t LaunchPlan(const TransposePlan& plan, const DeviceTraits& traits, const void* in, void* out,
                       cudaStream_t stream);

// One each variant of the ladder; the file of each says what it shows.
CudaLaunch<TransposeProblem> LaunchTransposeMultiElement;
CudaLaunch<TransposeProblem> LaunchTransposeNaive;
CudaLaunch<TransposeProblem> LaunchTransposeNaiveWrite;
CudaLaunch<TransposeProblem> LaunchTransposePadded;
CudaLaunch<TransposeProblem> LaunchTransposePaddedVectorized;
CudaLaunch<TransposeProblem> LaunchTransposeShared;
CudaLaunch<TransposeProblem> LaunchTransposeShifted;
CudaLaunch<TransposeProblem> LaunchTransposeShuffle;
CudaLaunch<TransposeProblem> LaunchTransposeSwizzled;
CudaLaunch<TransposeProblem> LaunchTransposeSwizzledVectorized;
CudaLaunch<TransposeProblem> LaunchTransposeUnpadded;
CudaLaunch<TransposeProblem> LaunchTransposeVectorized;

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_KERNELS_H_
