#include <bit>
#include <iterator>
#include <optional>

#include "tests/testing/shapes.h"

namespace warpline::testing {
namespace {

// Types that the result may have instead of its usual one, by turns.
std::optional<DType> OtherOutDType(ReduceOp op, DType dtype, std::size_t number) {
  const DType usual = DefaultOutDType(op, dtype);
  if (number % 4 != 2 || IsArg(op) || op == ReduceOp::kAny || op == ReduceOp::kAll ||
      op == ReduceOp::kCountNonzero) {
    return std::nullopt;
  }
  constexpr DType kFloats[] = {DType::kF64, DType::kF32, DType::kBF16, DType::kF16};
  constexpr DType kIntegers[] = {DType::kI64, DType::kF64, DType::kU8,  DType::kI16,
                                 DType::kF32, DType::kU32, DType::kBool};
  if (IsFloat(usual)) return kFloats[number / 4 % std::size(kFloats)];
  return kIntegers[number / 4 % std::size(kIntegers)];
}

// Kernels are shared by types and operations: only some pairs meet every shape.
bool MeetsAllShapes(ReduceOp op, DType dtype) {
  const bool typed = IsFloat(dtype) || dtype == DType::kI32;
  // The error of var in f64 is also proportional to the mean, which the bounds on results do not know.
  const bool var = op == ReduceOp::kVar && dtype != DType::kF64;
  if (typed && (op == ReduceOp::kSum || op == ReduceOp::kMax || op == ReduceOp::kArgmax || var)) return true;
  // Each operation that computes in wider numbers than the elements meets all shapes with one type.
  switch (op) {
    case ReduceOp::kVar:
      return dtype == DType::kU8;
    case ReduceOp::kNorm2:
      return dtype == DType::kI32;
    case ReduceOp::kProd:
      return dtype == DType::kI8;
    case ReduceOp::kLogSumExp:
      return dtype == DType::kI64;
    case ReduceOp::kMean:
      return dtype == DType::kU64;
    default:
      return false;
  }
}

}  // namespace

std::vector<ReduceProblem> AwkwardReductions(ReduceOp op, DType dtype) {
  std::vector<ReduceProblem> all;
  const auto add = [&](const Shape& shape, std::uint32_t mask) {
    ReduceProblem p{op, dtype, shape, mask};
    p.row_stride = PaddedRow(shape, all.size());
    p.out_dtype = OtherOutDType(op, dtype, all.size());
    if (op == ReduceOp::kVar || op == ReduceOp::kStd) p.ddof = static_cast<std::int32_t>(all.size() % 3);
    all.push_back(p);
  };
  const auto add_all = [&](const Shape& shape) {  // all sets of axes but none, except at rank 0
    for (std::uint32_t mask = shape.rank == 0 ? 0 : 1; mask < 1u << shape.rank; ++mask) add(shape, mask);
  };
  for (const Shape& shape :
       {Shape{}, Shape{}, Shape{0}, Shape{0, 3}, Shape{3, 0}, Shape{4, 0, 5}, Shape{1023}, Shape{1025},
        Shape{3, 33, 65}, Shape{5, 1, 129}, Shape{2, 64, 7}, Shape{3, 4, 5, 33}, Shape{7, 1031},
        Shape{1031, 7}, Shape{33, 1}, Shape{4, 9, 1}}) {
    add_all(shape);
  }
  for (std::int64_t size : AwkwardSizes()) {
    add_all({size});
    add({size, 65}, 1), add({size, 65}, 2);
    add({65, size}, 1), add({65, size}, 2);
  }
  add({20011}, 1);
  add({521, 64}, 1);  // few results of many elements: shared by several blocks
  if (MeetsAllShapes(op, dtype)) {
    for (const Shape& shape :
         {Shape{4097}, Shape{100003}, Shape{521, 257}, Shape{kBeyondGrid, 2}, Shape{2, kBeyondGrid},
          Shape{2, 3, 2, 3, 2, 3, 2, 3}, Shape{1, 3, 1, 32, 1, 33, 1, 2}}) {
      add_all(shape);
    }
    add({2, kBeyondGrid, 2}, 0b010);
    // One result of more elements than a device takes in at once; results of few elements, in rows of an odd
    // length, and few results of unaligned rows.
    add({1 << 20}, 1);
    add({100003, 3}, 0b01), add({100003, 3}, 0b10);
    add({3, 100003}, 0b01), add({3, 100003}, 0b10);
    add({5, 1009, 3, 7}, 0b0101), add({5, 1009, 3, 7}, 0b1010);
    // Short rows that are multiples of 16 bytes, one more than eight CTAs take, and columns in runs.
    add({297, 3}, 0b10);
    for (std::int64_t size : {4, 8, 12, 16, 48, 100, 250, 500}) add({3001, size}, 0b10);
    add({6, 33, 130, 8}, 0b0101), add({7, 20, 40, 64}, 0b0101);
    // Unaligned runs: longer than a warp's vectors, and so many of a few results that CTAs share
    // them.
    add({3, 2, 20011}, 0b101), add({1 << 12, 3, 129}, 0b101), add({5, 3, 7, 2, 11}, 0b10101);
    // Columns of blocks that are not aligned to 16 bytes, without padding, which would end the blocks.
    for (const Shape& shape : {Shape{3, 129, 129}, Shape{3, 520, 255}, Shape{5, 5555, 3}, Shape{3, 8209, 2},
                               Shape{2, 70, 250}, Shape{3, 30011, 5}}) {
      add(shape, 0b010);
      all.back().row_stride = 0;
    }
  }
  if (MeetsAllShapes(op, dtype) || op == ReduceOp::kSum || op == ReduceOp::kMax || op == ReduceOp::kArgmax) {
    const auto add_block = [&](const Shape& shape) {  // without padding
      add(shape, 0b010);
      all.back().row_stride = 0;
    };
    // Blocks of columns for every multiprocessor: several of them a CTA and threads that share a result, more
    // results than threads, and more bytes than shared memory has without asking.
    for (const Shape& shape : {Shape{1203, 5, 3}, Shape{300, 33, 17}, Shape{150, 9, 300}}) add_block(shape);
    if (SizeOf(dtype) == 4) {
      add_block({150, 99, 125});
      // Less than that, but not with the shared memory that kernels have of their own (sums 1 KiB, argmax 4,
      // var 6).
      for (const Shape& shape : {Shape{150, 100, 121}, Shape{150, 90, 129}, Shape{150, 86, 129}})
        add_block(shape);
    }
    // Odd rows of more columns than such blocks have: vectors begin before them. Of two the last tile has
    // less than a vector.
    for (const Shape& shape :
         {Shape{1, 523, 261}, Shape{3, 130, 1033}, Shape{1, 17, 254}, Shape{1, 130, 501}}) {
      add_block(shape);
    }
  }
  if (!HasIdentity(op)) {
    std::erase_if(all, [](const ReduceProblem& p) {
      return p.ReducedCount() == 0 && p.OutputShape(false).Count() != 0;
    });
  }
  if (IsArg(op)) {
    std::erase_if(all, [](const ReduceProblem& p) {
      const int reduced = std::popcount(p.axes_mask);
      return reduced > 1 && reduced < p.shape.rank;
    });
  }
  return all;
}

// A test takes seconds on the CPU: every operation for one type, the usual ones for one of each size.
bool MeetsLongRows(ReduceOp op, DType dtype) {
  const bool usual = op == ReduceOp::kSum || op == ReduceOp::kMax || op == ReduceOp::kArgmax;
  // Numbers of 8 bytes go to other kernels.
  if (SizeOf(dtype) == 8) return dtype == DType::kF64 && op == ReduceOp::kArgmax;
  return dtype == DType::kF32 || (usual && (dtype == DType::kU8 || dtype == DType::kBF16));
}

std::vector<ReduceProblem> LongOddRows(ReduceOp op, DType dtype) {
  std::vector<ReduceProblem> all;
  const auto bytes = static_cast<std::int64_t>(SizeOf(dtype));
  const std::int64_t elements = (33 << 20) / bytes;
  const auto add = [&](const Shape& shape, std::uint32_t mask, std::int64_t padding = 0) {
    ReduceProblem p{op, dtype, shape, mask};
    if (padding > 0) p.row_stride = shape[shape.rank - 1] + padding;
    all.push_back(p);
  };
  // Blocks of few rows, and yet too large for shared memory: of one tile a row, whose last element is not the
  // last of 16 bytes, and of several.
  for (const std::int64_t columns : {1001, 4411}) {
    const std::int64_t rows = (80 << 10) / (columns * bytes) + 1;
    add({elements / (rows * columns) + 1, rows, columns}, 0b010);
  }
  // Fewer rows than threads take at once.
  add({3, elements / 3 / 2 * 2 + 1}, 0b01);
  add({elements / 1001 / 2 * 2 + 1, 1, 1001}, 0b010);
  // Padded rows between two kept axes.
  add({elements / (31 * 259) + 1, 31, 259}, 0b010, 3);
  if (IsArg(op)) return all;
  // Two reduced axes: between kept ones, and of few results, which many CTAs share.
  add({3, 7, elements / (3 * 7 * 2 * 301) + 1, 2, 301}, 0b01010, 5);
  add({3, 5, elements / (3 * 5 * 1031) + 1, 1031}, 0b0101);
  if (op == ReduceOp::kSum || op == ReduceOp::kNorm2 || op == ReduceOp::kLogSumExp) {
    all.push_back(all.back());
    if (IsFloat(dtype)) all.back().out_dtype = DType::kF64;
  }
  return all;
}

bool MeetsFewRows(ReduceOp op, DType dtype) {
  if (IsArg(op) || op == ReduceOp::kLogSumExp) return false;  // go to other kernels
  const bool usual = op == ReduceOp::kSum || op == ReduceOp::kMax;
  return dtype == DType::kF32 ||
         (usual && (dtype == DType::kU8 || dtype == DType::kBF16 || dtype == DType::kF64)) ||
         (op == ReduceOp::kMean && dtype == DType::kI16);
}

std::vector<ReduceProblem> FewLongRows(ReduceOp op, DType dtype) {
  constexpr std::int64_t kThreads = 160 * 5 * 256;  // of a device with 160 multiprocessors
  const auto vector = static_cast<std::int64_t>(16 / SizeOf(dtype)), columns = kThreads * vector;
  std::vector<ReduceProblem> all;
  const auto add = [&](const Shape& shape, std::uint32_t mask, std::int64_t padding = 0) {
    all.push_back({op, dtype, shape, mask});
    if (padding > 0) all.back().row_stride = shape[shape.rank - 1] + padding;
  };
  // Fewer rows than a thread loads at once, as many, and some more; the last CTA has a vector.
  for (const std::int64_t rows : {2, 3, 4, 7}) add({rows, columns + vector}, 0b01);
  // Rows of padded blocks; results of another type, which are stored one by one.
  add({columns / (40 * vector) + 1, 3, 40 * vector}, 0b010, vector);
  if (IsFloat(dtype)) {
    add({3, columns}, 0b01);
    if (op == ReduceOp::kSum || op == ReduceOp::kMax) {
      all.back().out_dtype = dtype == DType::kF64 ? DType::kF32 : DType::kF64;
    }
  }
  return all;
}

}  // namespace warpline::testing
