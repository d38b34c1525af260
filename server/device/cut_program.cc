#include "server/device/cut_program.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/align.h"
#include "kernels/transpose/canonical.h"
#include "kernels/transpose/tile_walk.h"
#include "server/device/cut_ranges.h"

namespace warpline {
namespace {

// The longest pitch that cudaMemcpy2DAsync accepts.
constexpr std::size_t kMaxPitch = std::numeric_limits<std::int32_t>::max();

std::size_t Size(std::int64_t value) { return static_cast<std::size_t>(value); }

// Rows that follow one another without a gap are copied as one row.
PieceCopy MakeCopy(std::size_t host, std::size_t width, std::size_t rows, std::size_t host_pitch) {
  if (rows == 1 || width == host_pitch) {
    return {.host = host, .width = width * rows, .rows = 1, .host_pitch = width * rows};
  }
  return {.host = host, .width = width, .rows = rows, .host_pitch = host_pitch};
}

// How many bytes of the input a piece should have.
std::size_t TargetBytes(std::size_t total, const CutOptions& options) {
  return std::clamp(total / static_cast<std::size_t>(options.min_pieces), options.min_piece_bytes,
                    options.piece_bytes);
}

// The values that all pieces of one transpose have in common.
struct TransposeCut {
  const TransposeProblem& problem;
  CanonicalTranspose transpose;
  std::int64_t element;  // bytes
  std::size_t host_in, host_out;
  std::size_t input_bytes;  // of the storage
  const CutOptions& options;

  std::size_t TotalBytes() const { return Size(problem.shape.Count() * element); }
};

// Cuts along the outermost axis, if it is the same in input and output, so that the copies in both directions
// are contiguous. Each slice has at least `least` indices of that axis. Returns nothing if the program cannot
// be cut this way.
std::vector<Piece> Slices(const TransposeCut& cut, std::int64_t least) {
  const CanonicalTranspose& transpose = cut.transpose;
  const int rank = transpose.rank;
  if (rank == 0 || transpose.perm[0] != 0 || transpose.in_strides[rank - 1] != 1) return {};
  // The slice must again be an array with a row stride.
  for (int i = 0; i + 2 < rank; ++i) {
    if (transpose.in_strides[i] != transpose.in_strides[i + 1] * transpose.dims[i + 1]) return {};
  }
  TransposeProblem slice{.dtype = cut.problem.dtype};
  for (int i = 0; i < rank; ++i) {
    slice.shape.Append(transpose.dims[i]);
    slice.perm[i] = static_cast<std::int8_t>(transpose.perm[i]);
  }
  if (rank > 1) slice.row_stride = transpose.in_strides[rank - 2];
  const std::int64_t count = transpose.dims[0];
  const std::size_t in_bytes = Size(transpose.in_strides[0] * cut.element);
  const std::size_t out_bytes = cut.TotalBytes() / Size(count);
  const std::int64_t wanted =
      std::max(least, static_cast<std::int64_t>(TargetBytes(cut.TotalBytes(), cut.options) / out_bytes));
  if (wanted == 0) return {};
  // Slices of a vector, in which an index is a single element, begin at multiples of the alignment.
  std::vector<Range> ranges = EvenRanges(count, wanted, static_cast<std::int64_t>(kTensorAlignment));
  if (ranges.size() < 2) return {};
  std::vector<Range> tapered = GrowingParts(ranges.front(), cut.options.taper, 1);
  tapered.insert(tapered.end(), ranges.begin() + 1, ranges.end() - 1);
  const std::vector<Range> last = ShrinkingParts(ranges.back(), cut.options.taper, 1);
  tapered.insert(tapered.end(), last.begin(), last.end());
  std::vector<Piece> pieces;
  for (const Range& range : tapered) {
    slice.shape[0] = range.size;
    const std::size_t begin = Size(range.begin) * in_bytes;
    // The padding of the last row may be missing.
    const std::size_t end = std::min(begin + Size(range.size) * in_bytes, cut.input_bytes);
    pieces.push_back(
        {.in = MakeCopy(cut.host_in + begin, end - begin, 1, 0),
         .problem = slice,
         .out = MakeCopy(cut.host_out + Size(range.begin) * out_bytes, Size(range.size) * out_bytes, 1, 0)});
  }
  return pieces;
}

// How many elements a block has along x and y of a tile walk.
struct Sides {
  std::int64_t x = 1, y = 1;
};

Sides BlockSides(const TileWalk& walk, const TransposeCut& cut) {
  const CutOptions& options = cut.options;
  const auto target = static_cast<std::int64_t>(TargetBytes(cut.TotalBytes(), options)) / cut.element;
  const auto elements = [&](std::size_t bytes) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes) / cut.element);
  };
  Sides sides{std::min(walk.nx, elements(options.in_row_bytes)),
              std::min(walk.ny, elements(options.out_row_bytes))};
  // If the matrix ends before one side has its full length, the other side becomes longer instead.
  sides.y = std::min(walk.ny, std::max(sides.y, target / sides.x));
  sides.x = std::min(walk.nx, std::max(sides.x, target / sides.y));
  while (sides.x * sides.y > target) {
    std::int64_t& longer = sides.x > sides.y ? sides.x : sides.y;
    if (longer < 2 * elements(options.min_row_bytes)) break;
    longer = (longer + 1) / 2;
  }
  return sides;
}

struct Block {
  Range x, y;
};

// The blocks of one matrix.
std::vector<Block> Blocks(const TileWalk& walk, const Sides& sides, std::int64_t element) {
  constexpr std::int64_t kLineBytes = 128;
  const std::int64_t align = std::max<std::int64_t>(1, kLineBytes / element);
  std::vector<Block> blocks;
  for (const Range& y : EvenRanges(walk.ny, sides.y, align)) {
    for (const Range& x : EvenRanges(walk.nx, sides.x, align)) blocks.push_back({x, y});
  }
  return blocks;
}

// Cuts each matrix of the batch into blocks. Their rows run along x in the input and along y in the output.
std::vector<Piece> MatrixBlocks(const TransposeCut& cut) {
  const TileWalk walk = MakeTileWalk(cut.transpose);
  const std::int64_t matrices = walk.batch.Count();
  if (walk.in_stride_x != 1 || walk.out_stride_y != 1 || walk.ny < 2) return {};
  const Sides sides = BlockSides(walk, cut);
  const std::vector<Block> blocks = Blocks(walk, sides, cut.element);
  const auto element = Size(cut.element);
  const std::size_t in_pitch = Size(walk.in_stride_y) * element;
  const std::size_t out_pitch = Size(walk.out_stride_x) * element;
  if (Size(matrices) > cut.options.max_pieces || in_pitch > kMaxPitch || out_pitch > kMaxPitch) return {};

  std::vector<Piece> pieces;
  const auto add = [&](std::int64_t in, std::int64_t out, const Block& block) {
    TransposeProblem problem{
        .dtype = cut.problem.dtype, .shape = {block.y.size, block.x.size}, .perm = {1, 0}};
    in += block.y.begin * walk.in_stride_y + block.x.begin;
    out += block.x.begin * walk.out_stride_x + block.y.begin;
    pieces.push_back({.in = MakeCopy(cut.host_in + Size(in) * element, Size(block.x.size) * element,
                                     Size(block.y.size), in_pitch),
                      .problem = problem,
                      .out = MakeCopy(cut.host_out + Size(out) * element, Size(block.y.size) * element,
                                      Size(block.x.size), out_pitch)});
  };
  // The first block is cut so that its input rows stay whole, because its copy in runs alone. The last block
  // is cut so that its output rows stay whole.
  const std::int64_t least =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(cut.options.min_row_bytes) / cut.element);
  for (std::int64_t matrix = 0; matrix < matrices; ++matrix) {
    const TileOrigin origin = [&] {
      TileWalk whole = walk;
      whole.tiles_x = whole.tiles_y = 1;
      return LocateTile(whole, matrix, 0, 0);
    }();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const bool first = matrix == 0 && i == 0;
      const bool last = matrix + 1 == matrices && i + 1 == blocks.size();
      const int share = first || last ? cut.options.taper : 1;
      if (last) {
        for (const Range& x : ShrinkingParts(blocks[i].x, share, least)) {
          add(origin.in, origin.out, {x, blocks[i].y});
        }
      } else {
        for (const Range& y : GrowingParts(blocks[i].y, share, least)) {
          add(origin.in, origin.out, {blocks[i].x, y});
        }
      }
    }
  }
  // Gives up if any piece has rows that are too short for a copy of their own (CutOptions::min_row_bytes).
  const auto too_short = [&](const PieceCopy& copy) {
    return copy.rows > 1 && copy.width < cut.options.min_row_bytes;
  };
  for (const Piece& piece : pieces) {
    if (too_short(piece.in) || too_short(piece.out)) return {};
  }
  return pieces;
}

std::vector<Piece> CutStep(const TransposeProblem& problem, std::size_t host_in, std::size_t host_out,
                           std::size_t input_bytes, const CutOptions& options) {
  const TransposeCut cut{.problem = problem,
                         .transpose = Canonicalize(problem),
                         .element = static_cast<std::int64_t>(SizeOf(problem.dtype)),
                         .host_in = host_in,
                         .host_out = host_out,
                         .input_bytes = input_bytes,
                         .options = options};
  std::vector<Piece> pieces = Slices(cut, /*least=*/0);
  if (pieces.empty()) pieces = MatrixBlocks(cut);
  if (pieces.empty()) pieces = Slices(cut, /*least=*/1);  // pieces larger than wanted
  return pieces;
}

}  // namespace

std::optional<Cutting> CutProgram(const Program& program, const MemoryPlan& plan, std::size_t arena_bytes,
                                  const CutOptions& options) {
  if (program.steps.size() != 1 || program.outputs.size() != 1 || program.num_inputs != 1)
    return std::nullopt;
  const Step& step = program.steps.front();
  const auto* problem = std::get_if<TransposeProblem>(&step.problem);
  if (problem == nullptr || !step.variant.empty() || problem->shape.Count() == 0) return std::nullopt;
  if (!step.input_offsets.empty()) return std::nullopt;
  Cutting cutting;
  const auto on_host = [&plan](int tensor) {
    const Placement& place = plan.tensors[tensor];
    return place.area == Area::kShared ? 0 : place.offset;
  };
  cutting.pieces = CutStep(*problem, on_host(step.inputs[0]), on_host(step.output),
                           program.tensors[step.inputs[0]].bytes, options);
  if (cutting.pieces.size() < 2 || cutting.pieces.size() > options.max_pieces) return std::nullopt;
  for (Piece& piece : cutting.pieces) {
    for (PieceCopy* copy : {&piece.in, &piece.out}) {
      copy->device = cutting.arena_bytes;
      cutting.arena_bytes += AlignUp(copy->bytes(), kTensorAlignment);
    }
  }
  if (cutting.arena_bytes > arena_bytes) return std::nullopt;
  return cutting;
}

}  // namespace warpline
