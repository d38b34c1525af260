// Cuts a program into pieces that travel one after the other: while one piece is copied in, another is
// computed and a third is copied out. A pure function of sizes; see CutPipeline for what runs it.
#ifndef WARPLINE_SERVER_DEVICE_CUT_PROGRAM_H_
#define WARPLINE_SERVER_DEVICE_CUT_PROGRAM_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/problem.h"
#include "kernels/program.h"

namespace warpline {

// How large the pieces are. Two-dimensional copies run at full speed from rows of 4 KiB on (54 GB/s; with
// both directions at once 47 GB/s each way, 48.5 with rows of 8 KiB), at 45 GB/s with rows of 2 KiB and at 37
// with rows of 1 KiB.
struct CutOptions {
  // A piece has at most about so many bytes of the input. It has fewer if there would be less than
  // `min_pieces` of them, but never less than `min_piece_bytes`.
  std::size_t piece_bytes = std::size_t{8} << 20;
  std::size_t min_piece_bytes = std::size_t{512} << 10;
  int min_pieces = 8;
  // How long a row of a block is in the input and in the output, where the other limits leave the choice.
  std::size_t in_row_bytes = 4096;
  std::size_t out_row_bytes = 8192;
  // Rows that are shorter, and do not lie one after the other, are not worth a copy of their own.
  std::size_t min_row_bytes = 1024;
  // The first and the last piece travel alone, so each of them is cut again, into parts that grow from one of
  // size / `taper`, or shrink to it. 2 means two halves, and 1 leaves them whole.
  int taper = 2;
  // More pieces than this are not worth their launches, nor the memory that a known program keeps of them.
  std::size_t max_pieces = 256;
};

// A copy of `rows` rows of `width` bytes between the host and the arena, in which they are dense.
struct PieceCopy {
  std::size_t host = 0;    // offset in the input or output area, or in the tensor if it is shared
  std::size_t device = 0;  // offset in the arena; a multiple of kTensorAlignment
  std::size_t width = 0;
  std::size_t rows = 1;
  std::size_t host_pitch = 0;  // bytes from one row to the next; equal to `width` if there is one

  std::size_t bytes() const { return width * rows; }
};

// A transpose of what `in` brings, whose result `out` takes away.
struct Piece {
  PieceCopy in;
  TransposeProblem problem;
  PieceCopy out;
};

struct Cutting {
  std::vector<Piece> pieces;
  std::size_t arena_bytes = 0;  // what the pieces take, from the beginning of the arena
};

// Returns nothing if the program cannot be cut so that the result has the same bits and the copies are fast,
// or if the pieces would not fit into `arena_bytes`. What can be cut is a program of one transpose, if the
// rows of its blocks are long enough or if it keeps its outermost axis.
//
// Reductions and products are not cut, on purpose: the same request would have other bits under load than
// alone. Pieces of a reduction would divide the elements of a result in another way; besides, its result is
// small, so that only the time of the kernel would be hidden (2 % of a sum over 256 MiB). For a product
// cuBLASLt chooses an algorithm by the number of rows.
std::optional<Cutting> CutProgram(const Program& program, const MemoryPlan& plan, std::size_t arena_bytes,
                                  const CutOptions& options);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUT_PROGRAM_H_
