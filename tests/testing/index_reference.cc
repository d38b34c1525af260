#include "tests/testing/index_reference.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "kernels/operand_sizes.h"
#include "tests/testing/random_tensor.h"
#include "tests/testing/reference.h"

namespace warpline::testing {
namespace {

using Place = PerAxis<std::int64_t>;

Place PlaceOf(const Shape& shape, std::int64_t number) {
  Place place{};
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    place[axis] = number % shape[axis];
    number /= shape[axis];
  }
  return place;
}

std::int64_t At(const Place& place, const Strides& strides, int rank) {
  std::int64_t at = 0;
  for (int axis = 0; axis < rank; ++axis) at += place[axis] * strides[axis];
  return at;
}

std::int64_t IndexAt(DType dtype, const Bytes& indices, std::int64_t at, std::int64_t axis_size) {
  const auto index = static_cast<std::int64_t>(Load(dtype, indices, at));
  return index < 0 ? index + axis_size : index;
}

Bytes RandomIndices(DType dtype, std::int64_t count, std::int64_t axis_size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::int64_t> any(-axis_size, axis_size - 1);
  Bytes indices(static_cast<std::size_t>(count) * SizeOf(dtype));
  for (std::int64_t i = 0; i < count; ++i) Store(dtype, static_cast<long double>(any(random)), indices, i);
  return indices;
}

// x of this shape, dense, by indices of another along an axis.
TakeProblem TakeOf(DType dtype, DType index_dtype, const Shape& x, int axis, const Shape& indices) {
  TakeProblem problem{.dtype = dtype, .index_dtype = index_dtype, .shape = {}};
  const Strides of_x = RowMajorStrides(x), of_indices = RowMajorStrides(indices);
  problem.axis_size = x[axis];
  problem.axis_stride = of_x[axis];
  for (int i = 0; i < x.rank; ++i) {
    if (i != axis) {
      problem.x_strides[problem.shape.rank] = of_x[i];
      problem.shape.Append(x[i]);
      continue;
    }
    for (int k = 0; k < indices.rank; ++k) {
      problem.index_strides[problem.shape.rank] = of_indices[k];
      problem.shape.Append(indices[k]);
    }
  }
  return problem;
}

// x by indices of its own rank, of which `indices` may have size 1 along other axes.
TakeProblem TakeAlong(DType dtype, DType index_dtype, const Shape& x, int axis, const Shape& indices) {
  TakeProblem problem{.dtype = dtype, .index_dtype = index_dtype, .shape = x};
  problem.shape[axis] = indices[axis];
  problem.x_strides = RowMajorStrides(x);
  problem.axis_size = x[axis];
  problem.axis_stride = problem.x_strides[axis];
  problem.x_strides[axis] = 0;
  problem.index_strides = RowMajorStrides(indices);
  for (int i = 0; i < x.rank; ++i) {
    if (indices[i] == 1) problem.index_strides[i] = 0;
  }
  return problem;
}

PutProblem PutOf(DType dtype, DType index_dtype, const Shape& x, int axis, std::int64_t count, bool repeats) {
  PutProblem problem{.dtype = dtype, .index_dtype = index_dtype, .shape = x, .axis = axis, .index_shape = x};
  problem.index_shape[axis] = count;
  Shape own = problem.index_shape;
  if (repeats && x.rank > 1) own[axis == 0 ? 1 : 0] = 1;  // indices that all rows, or columns, share
  problem.index_strides = RowMajorStrides(own);
  problem.value_strides = RowMajorStrides(problem.index_shape);
  for (int i = 0; i < x.rank; ++i) {
    if (own[i] == 1) problem.index_strides[i] = 0;
  }
  if (repeats) problem.value_strides = {};
  return problem;
}

}  // namespace

std::int64_t ElementsBeforeFirst(const TakeProblem& problem) {
  if (problem.axis_size == 0) return 0;
  return ElementsBefore(problem.shape, problem.x_strides) +
         std::max<std::int64_t>(-problem.axis_stride * (problem.axis_size - 1), 0);
}

Bytes Take(const TakeProblem& problem, std::span<const Bytes> operands) {
  const std::size_t size = SizeOf(problem.dtype);
  Bytes y(static_cast<std::size_t>(problem.shape.Count()) * size);
  const int rank = problem.shape.rank;
  for (std::int64_t i = 0; i < problem.shape.Count(); ++i) {
    const Place place = PlaceOf(problem.shape, i);
    const std::int64_t index =
        IndexAt(problem.index_dtype, operands[1], At(place, problem.index_strides, rank), problem.axis_size);
    const std::int64_t from =
        ElementsBeforeFirst(problem) + At(place, problem.x_strides, rank) + index * problem.axis_stride;
    std::memcpy(y.data() + static_cast<std::size_t>(i) * size,
                operands[0].data() + static_cast<std::size_t>(from) * size, size);
  }
  return y;
}

Bytes Put(const PutProblem& problem, std::span<const Bytes> operands) {
  const std::size_t size = SizeOf(problem.dtype);
  Bytes y = operands[0];
  const int rank = problem.shape.rank;
  const Strides strides = RowMajorStrides(problem.shape);
  for (std::int64_t i = 0; i < problem.index_shape.Count(); ++i) {
    Place place = PlaceOf(problem.index_shape, i);
    const std::int64_t value = At(place, problem.value_strides, rank);
    place[problem.axis] = IndexAt(problem.index_dtype, operands[1], At(place, problem.index_strides, rank),
                                  problem.shape[problem.axis]);
    std::memcpy(y.data() + static_cast<std::size_t>(At(place, strides, rank)) * size,
                operands[2].data() + static_cast<std::size_t>(value) * size, size);
  }
  return y;
}

Bytes Compress(const CompressProblem& problem, std::span<const Bytes> operands) {
  const std::size_t row = static_cast<std::size_t>(problem.width) * SizeOf(problem.dtype);
  Bytes y;
  for (std::size_t i = 0; i < static_cast<std::size_t>(problem.rows); ++i) {
    if (operands[1][i] == std::byte{0}) continue;
    const auto first = operands[0].begin() + static_cast<std::ptrdiff_t>(i * row);
    y.insert(y.end(), first, first + static_cast<std::ptrdiff_t>(row));
  }
  return y;
}

// The mask takes by turns half of the rows, few, all, and none.
std::vector<Bytes> IndexOperands(const CompressProblem& problem, std::uint64_t seed) {
  const auto sizes = InputSizes(problem);
  Bytes mask = RandomBytes(sizes[1].Bytes(), seed);
  for (std::byte& byte : mask) {
    const int value = std::to_integer<int>(byte);
    const bool takes[] = {value < 128, value < 2, true, false};
    // Any byte but 0 is true.
    byte = takes[seed % 4] ? std::byte{static_cast<unsigned char>(value | 1)} : std::byte{0};
  }
  return {RandomBytes(sizes[0].Bytes(), seed + 1), mask};
}

std::vector<Bytes> IndexOperands(const TakeProblem& problem, std::uint64_t seed) {
  const auto sizes = InputSizes(problem);
  return {RandomBytes(sizes[0].Bytes(), seed),
          RandomIndices(problem.index_dtype, sizes[1].count, problem.axis_size, seed)};
}

std::vector<Bytes> IndexOperands(const PutProblem& problem, std::uint64_t seed) {
  const auto sizes = InputSizes(problem);
  return {RandomBytes(sizes[0].Bytes(), seed),
          RandomIndices(problem.index_dtype, sizes[1].count, problem.shape[problem.axis], seed),
          RandomBytes(sizes[2].Bytes(), seed + 1)};
}

namespace {

struct Indexed {
  Shape x;
  int axis = 0;
  Shape indices;
};

struct Written {
  Shape x;
  int axis = 0;
  std::int64_t count = 0;  // of indices along the axis
};

}  // namespace

std::vector<TakeProblem> AwkwardTakes(DType dtype) {
  std::vector<TakeProblem> all;
  for (const DType index : {DType::kI32, DType::kI64}) {
    for (const auto& [x, axis, indices] : std::vector<Indexed>{
             {{1}, 0, {1}},
             {{7}, 0, {100}},
             {{1000}, 0, {3, 5, 7}},
             {{5, 4}, 0, {9}},
             {{5, 4}, 1, {9}},
             {{33, 16}, 0, {65}},
             {{33, 17}, 0, {65}},
             {{100, 3}, 0, {257}},
             {{3, 100}, 1, {31}},
             {{2, 3, 4, 5}, 1, {2, 3}},
             {{2, 3, 4, 5}, 2, {}},
             {{4, 1, 8}, 1, {6}},
             {{2, 70001}, 0, {3}},
             {{70001, 2}, 0, {70003}},
             {{9, 128}, 0, {513}},
             {{3, 2, 1, 2, 3, 2, 2}, 4, {2, 2}},
             {{4, 5}, 0, {0}},
             {{7}, 0, {}},
             {{2, 1, 3, 2, 2}, 2, {2, 1, 2, 3}},
             {{1, 1, 1, 1, 1}, 2, {1, 1, 1, 1}},
         }) {
      all.push_back(TakeOf(dtype, index, x, axis, indices));
    }
    for (const auto& [x, axis, indices] : std::vector<Indexed>{
             {{9}, 0, {4}},
             {{5, 7}, 0, {3, 7}},
             {{5, 7}, 1, {5, 11}},
             {{5, 7}, 1, {1, 11}},
             {{6, 1, 9}, 2, {6, 1, 20}},
             {{300, 257}, 1, {300, 10}},
             {{257, 300}, 0, {10, 300}},
             {{2, 1, 3, 2, 2, 1, 2, 3}, 2, {2, 1, 5, 2, 1, 1, 2, 3}},
         }) {
      all.push_back(TakeAlong(dtype, index, x, axis, indices));
    }
  }
  // Takes of views: in reverse along both axes, every other column, and one row again and again.
  TakeProblem reversed = TakeOf(dtype, DType::kI64, {6, 8}, 0, {5});
  reversed.axis_stride = -8;
  reversed.x_strides[1] = -1;
  all.push_back(reversed);
  TakeProblem columns = TakeOf(dtype, DType::kI32, {6, 8}, 0, {5});
  columns.axis_stride = 16;
  columns.x_strides[1] = 2;
  all.push_back(columns);
  TakeProblem repeated = TakeOf(dtype, DType::kI32, {6, 8}, 1, {5});
  repeated.x_strides[0] = 0;
  all.push_back(repeated);
  return all;
}

std::vector<CompressProblem> AwkwardCompressions(DType dtype) {
  std::vector<CompressProblem> all;
  for (const std::int64_t rows : {0, 1, 31, 4095, 4096, 4097, 70001, 300000}) {
    for (const std::int64_t width : {0, 1, 3, 16, 33}) {
      if (rows * width > 1'000'000) continue;
      for (int turn = 0; turn < 4; ++turn) all.push_back({.dtype = dtype, .rows = rows, .width = width});
    }
  }
  return all;
}

std::vector<PutProblem> AwkwardPuts(DType dtype) {
  std::vector<PutProblem> all;
  for (const DType index : {DType::kI32, DType::kI64}) {
    for (const auto& [x, axis, count] : std::vector<Written>{
             {{1}, 0, 1},
             {{10}, 0, 100},
             {{5, 7}, 0, 3},
             {{5, 7}, 1, 9},
             {{2, 3, 4}, 1, 2},
             {{300, 33}, 1, 20},
             {{33, 300}, 0, 20},
             {{100003}, 0, 5000},
             {{3, 5}, 1, 0},
             {{0, 5}, 1, 2},
             {{2, 1, 3, 2, 2, 1, 2, 3}, 2, 4},
             {{1, 1, 1, 1, 1, 1, 1, 1}, 7, 2},
         }) {
      for (const bool repeats : {false, true}) all.push_back(PutOf(dtype, index, x, axis, count, repeats));
    }
  }
  return all;
}

}  // namespace warpline::testing
