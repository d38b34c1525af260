#include "tests/testing/shapes.h"

namespace warpline::testing {

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

}  // namespace warpline::testing
