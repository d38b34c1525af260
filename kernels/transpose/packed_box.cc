#include "kernels/transpose/packed_box.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/ceil_div.h"
#include "kernels/transpose/packed_rows.h"

namespace warpline {
namespace {

constexpr std::int64_t kSectorBytes = 32;
constexpr std::int64_t kMaxBoxBytes = 32 << 10;
// Maximum shared memory of a kernel without opt-in.
constexpr std::int64_t kMaxSharedBytes = 48 << 10;
// The cost of a run in addition to its bytes, in bytes: a run begins another DRAM burst.
constexpr double kRunOverhead = 24;
// The cost of a box in addition to its bytes: its CTA computes its position, and waits for its first and last
// access.
constexpr double kBoxOverhead = 2048;
// With boxes of this size, so few CTAs fit that the boxes cost twice as much.
constexpr double kBoxTooLarge = 128 << 10;
// The number of boxes that keeps a large device busy.
constexpr double kBusyBoxes = 264;

using Blocks = PerAxis<std::int64_t>;

std::int64_t RoundUp(std::int64_t size, std::int64_t multiple) { return CeilDiv(size, multiple) * multiple; }

// The contiguous elements of a box on one side, and how many axes of that side's order they span.
struct Run {
  int axes = 0;
  std::int64_t elements = 1;
};

// One side of the tensor: its axes, innermost first, and their strides in elements.
struct Side {
  int rank = 0;
  PerAxis<int> order{};
  Strides strides{};
  const CanonicalTranspose* transpose = nullptr;

  std::int64_t Size(int i) const { return transpose->dims[order[i]]; }
  // Returns whether the i-th axis is contiguous with all axes inside it.
  bool IsDense(int i) const {
    return strides[order[i]] == (i == 0 ? 1 : strides[order[i - 1]] * Size(i - 1));
  }

  Run RunOf(const Blocks& blocks) const {
    Run run;
    while (run.axes < rank && IsDense(run.axes)) {
      const std::int64_t block = blocks[order[run.axes]];
      run.elements *= block;
      ++run.axes;
      if (block < Size(run.axes - 1)) break;
    }
    return run;
  }

  // Returns whether runs that end within the i-th axis can begin in the middle of a word.
  bool SplitsWords(int i, int element_bytes) const {
    for (int j = i + 1; j < rank; ++j) {
      if (strides[order[j]] * element_bytes % 4 != 0) return true;
    }
    return false;
  }

  // Enlarges blocks until the run has about `bytes` bytes.
  void Extend(std::int64_t bytes, int element_bytes, Blocks& blocks) const {
    std::int64_t run = 1;
    for (int i = 0; i < rank && IsDense(i); ++i) {
      const std::int64_t size = Size(i);
      std::int64_t& block = blocks[order[i]];
      // If a run splits words, it should not have more words than lanes, including the words at its ends.
      const bool splits = SplitsWords(i, element_bytes);
      const std::int64_t wanted = CeilDiv(splits ? bytes - 4 : bytes, run * element_bytes);
      if (wanted <= 1) return;
      // Takes a whole axis instead of most of it. Otherwise uses blocks of equal size that end at sector
      // boundaries.
      if (block < size && size <= wanted + wanted / 2) block = size;
      if (block < size) {
        std::int64_t multiple = 1;
        while (!splits && 2 * multiple <= wanted && run * element_bytes * multiple % kSectorBytes != 0)
          multiple *= 2;
        const std::int64_t largest = RoundUp(std::max(wanted, block), multiple);
        block = std::min(size, RoundUp(CeilDiv(size, CeilDiv(size, largest)), multiple));
      }
      if (block < size) return;
      run *= size;
    }
  }

  // Returns the alignment of all runs in bytes, at most a sector: the largest power of two of which all run
  // offsets are multiples.
  std::int64_t Alignment(const Run& run, const Blocks& blocks, int element_bytes) const {
    std::int64_t steps = kSectorBytes;
    for (int i = 0; i < rank; ++i) {
      const int axis = order[i];
      if (i >= run.axes) steps |= strides[axis] * element_bytes;
      if (i + 1 == run.axes && blocks[axis] < Size(i)) steps |= strides[axis] * blocks[axis] * element_bytes;
    }
    return steps & -steps;
  }

  // Returns the bytes moved per byte of a run. This includes shared sectors, and the overhead of the run.
  double RunCost(const Blocks& blocks, int element_bytes) const {
    const Run run = RunOf(blocks);
    const auto shared = static_cast<double>(kSectorBytes - Alignment(run, blocks, element_bytes));
    return 1 + (shared + kRunOverhead) / static_cast<double>(run.elements * element_bytes);
  }
};

Side InputSide(const CanonicalTranspose& transpose) {
  Side side{.rank = transpose.rank, .order = {}, .strides = transpose.in_strides, .transpose = &transpose};
  for (int i = 0; i < side.rank; ++i) side.order[i] = side.rank - 1 - i;
  return side;
}

Side OutputSide(const CanonicalTranspose& transpose) {
  Side side{
      .rank = transpose.rank, .order = {}, .strides = transpose.OutputStrides(), .transpose = &transpose};
  for (int i = 0; i < side.rank; ++i) side.order[i] = transpose.perm[side.rank - 1 - i];
  return side;
}

// Returns the cost of moving the tensor in boxes of `blocks`, as a multiple of the cost of a plain copy.
double CostOf(const Side& in, const Side& out, const Blocks& blocks, int element_bytes) {
  double bytes = element_bytes;
  double boxes = 1;
  double waste = 1;  // the last block of an axis overlaps the one before
  for (int axis = 0; axis < in.rank; ++axis) {
    const std::int64_t size = in.transpose->dims[axis];
    const std::int64_t count = CeilDiv(size, blocks[axis]);
    bytes *= static_cast<double>(blocks[axis]);
    boxes *= static_cast<double>(count);
    waste *= static_cast<double>(count * blocks[axis]) / static_cast<double>(size);
  }
  const double idle = boxes < kBusyBoxes ? kBusyBoxes / boxes : 1;
  return waste * (in.RunCost(blocks, element_bytes) + out.RunCost(blocks, element_bytes)) / 2 *
         (1 + kBoxOverhead / bytes + bytes / kBoxTooLarge) * idle;
}

// Tries several run lengths on both sides.
Blocks ChooseBlocks(const Side& in, const Side& out, std::int64_t max_bytes, int element_bytes) {
  Blocks best;
  best.fill(1);
  double best_cost = std::numeric_limits<double>::infinity();
  for (std::int64_t in_bytes = 32; in_bytes <= max_bytes; in_bytes *= 2) {
    for (std::int64_t out_bytes = 32; out_bytes <= max_bytes; out_bytes *= 2) {
      Blocks blocks;
      blocks.fill(1);
      in.Extend(in_bytes, element_bytes, blocks);
      out.Extend(out_bytes, element_bytes, blocks);
      std::int64_t bytes = element_bytes;
      for (int axis = 0; axis < in.rank; ++axis) bytes *= blocks[axis];
      if (bytes > max_bytes) break;  // longer output runs make the box larger still
      const double cost = CostOf(in, out, blocks, element_bytes);
      if (cost < best_cost) {
        best_cost = cost;
        best = blocks;
      }
    }
  }
  return best;
}

// Number of paddings to try, in words of additional stride. At least one gives an odd stride.
constexpr std::int64_t kPads = 4;

// The box in shared memory: its axes in the order of that memory, first those of the input's run. The first
// `split` axes are dense, and so is a loaded row. The other strides have the low bits of the input's strides,
// so that words of the input remain words here.
struct Layout {
  std::vector<BoxAxis> axes;
  std::size_t split = 0;
  std::int64_t bytes = 0;
};

Layout MakeLayout(const std::vector<BoxAxis>& axes, std::size_t split, std::int64_t pad, int element_bytes) {
  Layout layout{.axes = axes, .split = split, .bytes = element_bytes};
  const std::int64_t word = PackedWordBytes(element_bytes);
  // Words at the ends of a row extend beyond it, and must not overlap those of the next row.
  const std::int64_t slack = word - element_bytes;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    BoxAxis& axis = layout.axes[i];
    if (i < split) {
      axis.tile_stride = layout.bytes;
    } else {
      std::int64_t stride = layout.bytes + slack;
      if (i == split) stride += pad * word;
      if (i > split) {  // if possible, contiguous with the previous axis
        const BoxAxis& before = layout.axes[i - 1];
        stride = std::max(stride, before.tile_stride * before.size);
      }
      stride += ((axis.in_stride - stride) % word + word) % word;
      axis.tile_stride = stride;
    }
    layout.bytes += axis.tile_stride * (axis.size - 1);
  }
  return layout;
}

// Plans the steps from box to box. Neighbouring boxes are neighbours in the input or the output. So sectors
// that they share are in the cache, and pages are open. The innermost axes of both orders come first, the
// batch last.
void PlanSteps(const Side& in, const Side& out, const Blocks& blocks, int element_bytes, PackedBox& box) {
  box.boxes = 1;
  box.box_extent = box.in_extent = element_bytes;
  PerAxis<bool> done{};
  for (int i = 0; i < 2 * in.rank; ++i) {
    const int axis = i % 2 == 0 ? in.order[i / 2] : out.order[i / 2];
    if (done[axis]) continue;
    done[axis] = true;
    const std::int64_t size = in.transpose->dims[axis], block = blocks[axis];
    OuterAxis outer{.count = CeilDiv(size, block), .divisor = {}, .block = block, .last = size - block};
    outer.in_stride = in.strides[axis] * element_bytes;
    outer.out_stride = out.strides[axis] * element_bytes;
    box.box_extent += (block - 1) * outer.in_stride;
    box.in_extent += (size - 1) * outer.in_stride;
    if (outer.count == 1) continue;
    if (outer.count < FastDivisor::kMax) outer.divisor = FastDivisor(outer.count);
    box.outer[box.outer_rank++] = outer;
    box.boxes *= outer.count;
  }
}

// Returns the axes of a box in the order of a layout: those of the input's run, then the remaining ones of
// the output's run.
std::vector<BoxAxis> AxesOf(const Side& in, const Side& out, const Blocks& blocks, int in_axes, int out_axes,
                            int element_bytes) {
  std::vector<BoxAxis> axes;
  PerAxis<bool> placed{};
  auto place = [&](const Side& side, int count) {
    for (int i = 0; i < count; ++i) {
      const int axis = side.order[i];
      if (placed[axis]) continue;
      placed[axis] = true;
      axes.push_back({.axis = axis,
                      .size = blocks[axis],
                      .in_stride = in.strides[axis] * element_bytes,
                      .out_stride = out.strides[axis] * element_bytes});
    }
  };
  place(in, in_axes);
  place(out, out_axes);
  return axes;
}

// Lays the box out in shared memory and divides it among threads. Returns false if it needs too much shared
// memory.
bool PlanTile(const Side& in, const Side& out, const Blocks& blocks, int element_bytes, PackedBox& box) {
  const auto in_axes = static_cast<std::size_t>(in.RunOf(blocks).axes);
  const int out_axes = out.RunOf(blocks).axes;
  const std::vector<BoxAxis> axes =
      AxesOf(in, out, blocks, static_cast<int>(in_axes), out_axes, element_bytes);
  std::size_t below = 0;  // axes of the layout inside the output's innermost one
  while (axes[below].axis != out.order[0]) ++below;

  // A lane gathers a word along the output's innermost axis, and its neighbours continue along that axis. So
  // an odd stride spreads the words over the banks. If that axis is within the input's run, this needs
  // shorter loaded rows.
  double best_cost = std::numeric_limits<double>::infinity();
  int conflicts = 2;
  for (std::size_t split : {in_axes, below}) {
    if (conflicts < 2 || (split != in_axes && (split == 0 || split > in_axes))) break;
    const PlannedRows load = PlanLoads(MakeLayout(axes, split, 0, element_bytes).axes, split, element_bytes);
    for (std::int64_t pad = 0; pad < kPads && conflicts > 1; ++pad) {
      const Layout layout = MakeLayout(axes, split, pad, element_bytes);
      GatherTable gather;
      const PlannedRows store =
          PlanStores(layout.axes, {out.order.begin(), out.order.begin() + out_axes}, element_bytes, gather);
      // A box may begin and end in the middle of a word.
      const std::int64_t tile_bytes = RoundUp(layout.bytes + 8, 16);
      const std::uint32_t entries =
          gather.rank == 0 ? 0 : gather.period.divisor + PackedWordBytes(element_bytes) / element_bytes - 1;
      if (tile_bytes + 2 * std::int64_t{entries} > kMaxSharedBytes) break;
      conflicts = store.conflicts;
      if (load.cost + store.cost >= best_cost) continue;
      best_cost = box.issue_slots = load.cost + store.cost;
      box.load = PlanLoads(layout.axes, split, element_bytes).rows;
      box.store = store.rows;
      box.gather = gather;
      box.tile_bytes = static_cast<std::uint32_t>(tile_bytes);
      box.table_entries = entries;
    }
    if (split == below) break;
  }
  return best_cost < std::numeric_limits<double>::infinity();
}

}  // namespace

PackedBox PlanPackedBox(const CanonicalTranspose& transpose, int element_bytes) {
  const Side in = InputSide(transpose), out = OutputSide(transpose);
  // In the worst case not even the input has runs, and each element is a word in shared memory.
  for (std::int64_t max_bytes = kMaxBoxBytes;; max_bytes /= 2) {
    const Blocks blocks = ChooseBlocks(in, out, max_bytes, element_bytes);
    PackedBox box;
    PlanSteps(in, out, blocks, element_bytes, box);
    if (PlanTile(in, out, blocks, element_bytes, box)) return box;
  }
}

}  // namespace warpline
