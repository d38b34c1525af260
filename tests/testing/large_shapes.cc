#include "tests/testing/shapes.h"

namespace warpline::testing {

// A test takes seconds on the CPU: every operation for one type, the usual ones for one of each size.
bool MeetsLongRows(ReduceOp op, DType dtype) {
  const bool usual = op == ReduceOp::kSum || op == ReduceOp::kMax || op == ReduceOp::kArgmax;
  const bool of_its_size = dtype == DType::kU8 || dtype == DType::kBF16 || dtype == DType::kF64;
  return dtype == DType::kF32 || (usual && of_its_size);
}

std::vector<ReduceProblem> LongOddRows(ReduceOp op, DType dtype) {
  std::vector<ReduceProblem> all;
  const std::int64_t elements = (33 << 20) / static_cast<std::int64_t>(SizeOf(dtype));
  const auto add = [&](const Shape& shape, std::uint32_t mask, std::int64_t padding = 0) {
    ReduceProblem p{op, dtype, shape, mask};
    if (padding > 0) p.row_stride = shape[shape.rank - 1] + padding;
    all.push_back(p);
  };
  const bool along_several = !IsArg(op);
  // Many blocks of few rows, whose last element is not the last of 16 bytes; rows of several tiles; fewer
  // rows than threads take at once.
  add({elements / (17 * 1001) + 1, 17, 1001}, 0b010);
  add({elements / (6 * 4411) + 1, 6, 4411}, 0b010);
  add({3, elements / 3 / 2 * 2 + 1}, 0b01);
  // Few results, shared by many CTAs.
  add({elements / 1031 + 1, 1031}, 0b01);
  // Padded rows between two kept axes, and two reduced ones between them.
  add({elements / (31 * 259) + 1, 31, 259}, 0b010, 3);
  if (along_several) add({3, 7, elements / (3 * 7 * 2 * 301) + 1, 2, 301}, 0b01010, 5);
  return all;
}

}  // namespace warpline::testing
