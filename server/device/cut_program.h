// Cuts a program into pieces, which form a pipeline: while one piece is copied in, another is computed and a
// third is copied out. A pure function of sizes; CutPipeline runs the pieces.
#ifndef WARPLINE_SERVER_DEVICE_CUT_PROGRAM_H_
#define WARPLINE_SERVER_DEVICE_CUT_PROGRAM_H_

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/problem.h"
#include "kernels/program.h"

namespace warpline {

// How large the pieces are. Two-dimensional copies run at full speed if rows have at least 4 KiB (54 GB/s;
// with both directions at once 47 GB/s each way, 48.5 with rows of 8 KiB), at 45 GB/s with rows of 2 KiB and
// at 37 GB/s with rows of 1 KiB.
struct CutOptions {
  // A piece has at most about this many bytes of the input. If there would be fewer than `min_pieces` pieces,
  // they get smaller, but never smaller than `min_piece_bytes`.
  std::size_t piece_bytes = std::size_t{8} << 20;
  std::size_t min_piece_bytes = std::size_t{512} << 10;
  int min_pieces = 8;
  // Row length of a block in the input and in the output, if the other limits leave a choice.
  std::size_t in_row_bytes = 4096;
  std::size_t out_row_bytes = 8192;
  // Shorter rows that are not contiguous are not worth a copy of their own.
  std::size_t min_row_bytes = 1024;
  // The copy in of the first piece and the copy out of the last one run alone, so each of these pieces is cut
  // again. The parts of the first grow from size / `taper`, those of the last shrink to it. 2 means two
  // halves, and 1 leaves the pieces whole.
  int taper = 2;
  // More pieces are not worth their launches, nor the memory that a known program needs for them.
  std::size_t max_pieces = 256;
};

// A copy of `rows` rows of `width` bytes between the host and the arena. The rows are dense in the arena.
struct PieceCopy {
  std::size_t host = 0;    // offset in the input or output area, or in the tensor if it is shared
  std::size_t device = 0;  // offset in the arena; a multiple of kTensorAlignment
  std::size_t width = 0;
  std::size_t rows = 1;
  std::size_t host_pitch = 0;  // bytes from one row to the next; equal to `width` if `rows` is 1

  std::size_t bytes() const { return width * rows; }
};

// A transpose with the copies of its input to the device and of its result back.
struct Piece {
  PieceCopy in;
  TransposeProblem problem;
  PieceCopy out;
};

struct Cutting {
  std::vector<Piece> pieces;
  std::size_t arena_bytes = 0;  // that the pieces use, from the beginning of the arena

  // Returns how many idle devices can share the pieces so that it is worth their threads and the waking of
  // them. Measured is only 512 MiB on two devices: 4.7 ms in place of 6.7
  // (docs/benchmarks/2026-11-29-h200-devices.md).
  int MaxParts() const {
    constexpr std::size_t kLeastPieces = 4, kLeastBytes = std::size_t{64} << 20;
    return static_cast<int>(
        std::max<std::size_t>(std::min(pieces.size() / kLeastPieces, arena_bytes / kLeastBytes), 1));
  }
};

// Returns nothing if the program cannot be cut so that the result has the same bits and the copies are fast,
// or if the pieces would not fit into `arena_bytes`. Only a program of one transpose can be cut, if the rows
// of its blocks are long enough or if it keeps its outermost axis.
//
// Reductions and products are not cut, on purpose: the same request would give different bits under load and
// alone. Pieces of a reduction would group the elements of a result differently. Besides, its result is
// small, so only the time of the kernel would be hidden (2 % of a sum over 256 MiB). For a product cuBLASLt
// chooses an algorithm by the number of rows.
std::optional<Cutting> CutProgram(const Program& program, const MemoryPlan& plan, std::size_t arena_bytes,
                                  const CutOptions& options);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUT_PROGRAM_H_
