// The choice of a kernel for a transposition. It is a value that is made once, printed, tested and launched
// (launch_plan.cc). Pure host code.
#ifndef WARPLINE_KERNELS_TRANSPOSE_PLAN_H_
#define WARPLINE_KERNELS_TRANSPOSE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "kernels/problem.h"
#include "kernels/transpose/canonical.h"
#include "kernels/transpose/joined_tiles.h"
#include "kernels/transpose/packed_box.h"
#include "kernels/transpose/small_blocks.h"
#include "kernels/transpose/tile_walk.h"
#include "kernels/variant.h"

namespace warpline {

// The kernels that the server itself can choose. Name returns the name. The file of each kernel describes it.
enum class TransposeKernel : std::uint8_t {
  kCopy,         // flat_copy.cu: the order of elements does not change, or there are none
  kRows,         // row_copy.cu: the innermost axis stays innermost
  kTiles,        // tiles.cu: both sides are multiples of 16 bytes
  kOddTiles,     // odd_tiles.cu: sides of any size
  kJoinedTiles,  // odd_tiles.cu: sides of several axes
  kChannels,     // channels.cu: 2, 3, 4, 8 or 16 channels of 1 or 2 bytes
  kSplitWords,   // channel_words.cu: channels of any number, split into planes
  kJoinedWords,  // channel_words.cu: planes, joined to channels
  kBox,          // packed_box.cu: short axes at either end
  kSmallBlocks,  // small_blocks.cu: contiguous blocks of a few KiB
};
inline constexpr int kTransposeKernels = static_cast<int>(TransposeKernel::kSmallBlocks) + 1;
constexpr std::string_view Name(TransposeKernel kernel) {
  switch (kernel) {
    case TransposeKernel::kCopy:
      return "copy";
    case TransposeKernel::kRows:
      return "rows";
    case TransposeKernel::kTiles:
      return "tiles";
    case TransposeKernel::kOddTiles:
      return "odd_tiles";
    case TransposeKernel::kJoinedTiles:
      return "joined_tiles";
    case TransposeKernel::kChannels:
      return "channels";
    case TransposeKernel::kSplitWords:
      return "split_words";
    case TransposeKernel::kJoinedWords:
      return "joined_words";
    case TransposeKernel::kBox:
      return "box";
    case TransposeKernel::kSmallBlocks:
      return "small_blocks";
  }
  return "";
}

struct TransposePlan {
  TransposeKernel kernel = TransposeKernel::kCopy;
  std::size_t element_bytes = 0;  // may be larger than those of the problem's type
  std::int64_t in_bytes = 0;      // from the first byte of the input to after the last one; 0: nothing to do
  // The arguments of the kernel. kCopy needs only in_bytes. kRows and kTiles need the transposition;
  // kOddTiles, kChannels, kSplitWords and kJoinedWords the walk; the others the type with their name.
  std::variant<std::monostate, CanonicalTranspose, TileWalk, JoinedTiles, PackedBox, SmallBlocks> shape;
};

// Chooses the kernel. `in` and `out` are the addresses of the operands, aligned to an element. Only their
// values modulo 16 matter.
TransposePlan PlanTranspose(const TransposeProblem& problem, const DeviceTraits& traits, const void* in,
                            const void* out);
// Plans for this kernel, whether fast or not. Returns nothing if it does not support the problem at these
// addresses.
std::optional<TransposePlan> PlanTransposeBy(TransposeKernel kernel, const TransposeProblem& problem,
                                             const DeviceTraits& traits, const void* in, const void* out);
// Returns whether PlanTransposeBy would have a plan for aligned addresses.
bool CanTranspose(TransposeKernel kernel, const TransposeProblem& problem, const DeviceTraits& traits);

// Parts of the choice that are also used by a rung of the ladder.

// Returns the fraction of tiles of tile_x x tile_y elements that is in use.
double FillOf(const TileWalk& walk, std::int64_t tile_x, std::int64_t tile_y);
// With a smaller fraction in use, tiles leave too many lanes idle.
inline constexpr double kMinTileFill = 0.45;
// Returns whether the problem has only one or two tiles.
bool HasFewTiles(const TileWalk& walk);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_PLAN_H_
