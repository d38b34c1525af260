// Programs in pieces, run on the host as a device does: together they give what the whole does.
#include "server/device/cut_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace warpline {
namespace {

TransposeProblem Problem(DType dtype, const std::vector<std::int64_t>& dims, const std::vector<int>& perm,
                         std::int64_t row_stride = 0) {
  TransposeProblem problem{.dtype = dtype, .row_stride = row_stride};
  for (std::int64_t dim : dims) problem.shape.Append(dim);
  for (std::size_t i = 0; i < perm.size(); ++i) problem.perm[i] = static_cast<std::int8_t>(perm[i]);
  return problem;
}

std::size_t StorageBytes(const TransposeProblem& problem) {
  const std::int64_t row = problem.shape.rank > 0 ? problem.shape[problem.shape.rank - 1] : 1;
  const std::int64_t stride = problem.row_stride != 0 ? problem.row_stride : row;
  if (problem.shape.Count() == 0) return 0;
  // The last row has no padding.
  return static_cast<std::size_t>((problem.shape.Count() / row - 1) * stride + row) * SizeOf(problem.dtype);
}

Program ProgramOf(const TransposeProblem& problem) {
  Program program;
  const Shape out = problem.OutputShape();
  program.tensors = {{problem.dtype, problem.shape, StorageBytes(problem)},
                     {problem.dtype, out, static_cast<std::size_t>(out.Count()) * SizeOf(problem.dtype)}};
  program.num_inputs = 1;
  program.steps.push_back({.problem = problem, .variant = {}, .inputs = {0}, .output = 1, .scalars = {}});
  program.outputs = {1};
  return program;
}

void Transpose(const TransposeProblem& problem, const std::byte* in, std::byte* out) {
  const std::size_t element = SizeOf(problem.dtype);
  const Strides strides = RowMajorStrides(problem.shape, problem.row_stride);
  const Shape shape = problem.OutputShape();
  for (std::int64_t i = 0; i < shape.Count(); ++i) {
    std::int64_t offset = 0, rest = i;
    for (int axis = shape.rank - 1; axis >= 0; --axis) {
      offset += rest % shape[axis] * strides[problem.perm[axis]];
      rest /= shape[axis];
    }
    std::memcpy(out + static_cast<std::size_t>(i) * element, in + static_cast<std::size_t>(offset) * element,
                element);
  }
}

// Small, so that small problems have many pieces.
CutOptions Small() {
  return {.piece_bytes = 4096,
          .min_piece_bytes = 64,
          .min_pieces = 4,
          .in_row_bytes = 64,
          .out_row_bytes = 128,
          .min_row_bytes = 16,
          .taper = 4,
          .max_pieces = 100000};
}

// Returns whether the program is cut; if so, checks the result.
bool IsCutRight(const TransposeProblem& problem, const CutOptions& options) {
  const Program program = ProgramOf(problem);
  const MemoryPlan plan = PlanMemory(program);
  const auto cutting = CutProgram(program, plan, std::size_t{1} << 40, options);
  if (!cutting.has_value()) return false;
  std::vector<std::byte> input(plan.input_bytes), output(plan.output_bytes), want(plan.output_bytes);
  std::mt19937 random(1);
  for (std::byte& byte : input) byte = static_cast<std::byte>(random());
  Transpose(problem, input.data(), want.data());
  std::vector<std::byte> arena(cutting->arena_bytes);
  std::vector<int> written(output.size()), used(arena.size());
  const auto use = [&](const PieceCopy& copy) {
    EXPECT_EQ(copy.device % kTensorAlignment, 0u);
    for (std::size_t i = 0; i < copy.bytes(); ++i) ++used.at(copy.device + i);
  };
  for (const Piece& piece : cutting->pieces) {
    use(piece.in);
    use(piece.out);
    for (std::size_t row = 0; row < piece.in.rows; ++row) {
      const std::size_t from = piece.in.host + row * piece.in.host_pitch;
      EXPECT_LE(from + piece.in.width, input.size());
      std::memcpy(arena.data() + piece.in.device + row * piece.in.width, input.data() + from, piece.in.width);
    }
    EXPECT_LE(StorageBytes(piece.problem), piece.in.bytes());
    EXPECT_EQ(static_cast<std::size_t>(piece.problem.shape.Count()) * SizeOf(problem.dtype),
              piece.out.bytes());
    Transpose(piece.problem, arena.data() + piece.in.device, arena.data() + piece.out.device);
    for (std::size_t row = 0; row < piece.out.rows; ++row) {
      const std::size_t to = piece.out.host + row * piece.out.host_pitch;
      EXPECT_LE(to + piece.out.width, output.size());
      std::memcpy(output.data() + to, arena.data() + piece.out.device + row * piece.out.width,
                  piece.out.width);
      for (std::size_t i = 0; i < piece.out.width; ++i) ++written.at(to + i);
    }
  }
  EXPECT_EQ(output, want);
  EXPECT_EQ(written, std::vector<int>(written.size(), 1)) << "every byte is written once";
  EXPECT_LE(*std::max_element(used.begin(), used.end()), 1) << "pieces do not share device memory";
  return true;
}

TEST(CutProgramTest, PiecesOfEveryElementSizeAndShapeGiveTheWhole) {
  int cut = 0;
  for (DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kF64, DType::kC128}) {
    for (int taper : {1, 2, 4}) {
      CutOptions options = Small();
      options.taper = taper;
      for (std::int64_t rows : {32, 33, 127, 256, 300}) {
        for (std::int64_t cols : {32, 63, 128, 257}) {
          for (std::int64_t padding : {0, 5}) {
            cut +=
                IsCutRight(Problem(dtype, {rows, cols}, {1, 0}, padding == 0 ? 0 : cols + padding), options);
          }
        }
      }
    }
  }
  EXPECT_GT(cut, 500);
}

TEST(CutProgramTest, BatchesAndOtherPermutations) {
  const CutOptions options = Small();
  EXPECT_TRUE(IsCutRight(Problem(DType::kF32, {3, 64, 80}, {0, 2, 1}), options));    // blocks of matrices
  EXPECT_TRUE(IsCutRight(Problem(DType::kF32, {500, 5, 7}, {0, 2, 1}), options));    // slices of the batch
  EXPECT_TRUE(IsCutRight(Problem(DType::kF32, {50, 5, 7}, {0, 2, 1}, 9), options));  // with padded rows
  EXPECT_TRUE(IsCutRight(Problem(DType::kF32, {40, 3, 50}, {2, 1, 0}), options));    // strided blocks
  EXPECT_TRUE(IsCutRight(Problem(DType::kF64, {20, 30, 40}, {2, 0, 1}), options));   // two axes in one
  EXPECT_TRUE(IsCutRight(Problem(DType::kU8, {1, 600, 1, 300}, {3, 1, 0, 2}), options));
  EXPECT_TRUE(IsCutRight(Problem(DType::kF32, {16, 20, 8, 8}, {0, 2, 1, 3}), options));  // rows stay rows
  EXPECT_TRUE(IsCutRight(Problem(DType::kF32, {100000}, {0}), options));                 // nothing moves
  EXPECT_TRUE(IsCutRight(Problem(DType::kF32, {200, 30}, {0, 1}, 41), options));         // padding goes
  EXPECT_TRUE(
      IsCutRight(Problem(DType::kU8, {5000, 16}, {1, 0}), options));  // short rows, one after the other
  EXPECT_TRUE(IsCutRight(Problem(DType::kU8, {16, 5000}, {1, 0}), options));
}

TEST(CutProgramTest, WhatCannotBeCutWell) {
  const CutOptions options = Small();
  EXPECT_FALSE(IsCutRight(Problem(DType::kF32, {0, 5}, {1, 0}), options));
  EXPECT_FALSE(IsCutRight(Problem(DType::kF32, {1, 1}, {1, 0}), options));
  EXPECT_FALSE(IsCutRight(Problem(DType::kU8, {5000, 15}, {1, 0}, 100), options)) << "short rows apart";
  EXPECT_FALSE(IsCutRight(Problem(DType::kF32, {50, 20, 100}, {1, 0, 2}), options)) << "rows move one by one";
  EXPECT_FALSE(IsCutRight(Problem(DType::kF32, {5000, 1}, {0, 1}, 3), options)) << "elements apart";
}

TEST(CutProgramTest, RandomProblemsGiveTheWhole) {
  std::mt19937_64 random(7);
  int cut = 0;
  for (int i = 0; i < 600; ++i) {
    const int rank = 1 + static_cast<int>(random() % 5);
    std::vector<std::int64_t> dims;
    std::vector<int> perm;
    for (int axis = 0; axis < rank; ++axis) {
      dims.push_back(static_cast<std::int64_t>(1 + random() % (rank <= 2 ? 200 : rank == 3 ? 50 : 12)));
      perm.push_back(axis);
    }
    std::shuffle(perm.begin(), perm.end(), random);
    const std::int64_t stride = random() % 3 == 0 ? dims.back() + static_cast<std::int64_t>(random() % 9) : 0;
    const DType dtypes[] = {DType::kU8, DType::kF16, DType::kF32, DType::kF64, DType::kC128};
    CutOptions options = Small();
    options.min_row_bytes = std::size_t{1} << random() % 7;
    options.piece_bytes = std::size_t{256} << random() % 8;
    options.min_pieces = static_cast<int>(1 + random() % 9);
    cut += IsCutRight(Problem(dtypes[random() % 5], dims, perm, stride), options);
    ASSERT_FALSE(HasFailure()) << "problem " << i;
  }
  EXPECT_GT(cut, 200);
}

TEST(CutProgramTest, OnlyOneTransposeOfTheServersChoice) {
  const auto is_cut = [](const Program& program) {
    return CutProgram(program, PlanMemory(program), std::size_t{1} << 40, Small()).has_value();
  };
  Program program = ProgramOf(Problem(DType::kF32, {128, 128}, {1, 0}));
  EXPECT_TRUE(is_cut(program));
  program.steps[0].variant = "naive_read";
  EXPECT_FALSE(is_cut(program));
  program.steps[0].variant.clear();
  program.steps[0].problem = ReduceProblem{.shape = {128, 128}, .axes_mask = 2};
  EXPECT_FALSE(is_cut(program));
  program = ProgramOf(Problem(DType::kF32, {128, 128}, {1, 0}));
  program.tensors.push_back(program.tensors[1]);
  program.steps.push_back(program.steps[0]);
  program.steps[1].inputs = {1};
  program.steps[1].output = 2;
  program.outputs = {2};
  EXPECT_FALSE(is_cut(program));
}

TEST(CutProgramTest, PiecesOfASharedTensorCountFromItsBeginning) {
  const Program program = ProgramOf({.dtype = DType::kF32, .shape = {64, 64}, .perm = {1, 0}});
  const auto first = [&](const OwnMemory& own) {
    const auto cutting = CutProgram(program, PlanMemory(program, own), std::size_t{1} << 40, Small());
    std::pair<std::size_t, std::size_t> least{~std::size_t{0}, ~std::size_t{0}};
    for (const Piece& piece : cutting.value().pieces) {
      least = {std::min(least.first, piece.in.host), std::min(least.second, piece.out.host)};
    }
    return least;
  };
  const std::pair<std::size_t, std::size_t> zeros{0, 0};
  EXPECT_EQ(first({}), zeros);
  // The result's image lies behind the input's, but the result itself has memory of its own.
  EXPECT_EQ(first({.resident = {}, .shared = {0, 1}}), zeros);
}

TEST(CutProgramTest, ItMustFitIntoTheArena) {
  const Program program = ProgramOf(Problem(DType::kF32, {128, 128}, {1, 0}));
  const MemoryPlan plan = PlanMemory(program);
  const std::size_t needed = CutProgram(program, plan, std::size_t{1} << 40, Small())->arena_bytes;
  EXPECT_TRUE(CutProgram(program, plan, needed, Small()).has_value());
  EXPECT_FALSE(CutProgram(program, plan, needed - 1, Small()).has_value());
}

TEST(CutProgramTest, PiecesOfTheDefaultSize) {
  struct Expectation {
    Shape shape;
    std::size_t pieces;
  };
  // 8192 x 8192: blocks of 8 MiB, the first and the last in two parts.
  for (const auto& [shape, pieces] : {Expectation{{8192, 8192}, 32 + 2}, Expectation{{2048, 2048}, 8 + 2},
                                      Expectation{{8191, 8193}, 32 + 2}, Expectation{{1000003, 16}, 8 + 1}}) {
    const Program program = ProgramOf(Problem(DType::kF32, {shape[0], shape[1]}, {1, 0}));
    const auto cutting = CutProgram(program, PlanMemory(program), std::size_t{1} << 40, CutOptions());
    ASSERT_TRUE(cutting.has_value()) << ToString(shape);
    EXPECT_EQ(cutting->pieces.size(), pieces) << ToString(shape);
    for (const Piece& piece : cutting->pieces) {
      EXPECT_GE(piece.in.width, 1024u) << ToString(shape);
      EXPECT_GE(piece.out.width, 1024u) << ToString(shape);
      EXPECT_LE(piece.in.bytes(), (std::size_t{8} << 20) + (std::size_t{1} << 20)) << ToString(shape);
    }
    EXPECT_LE(cutting->arena_bytes, 2 * program.tensors[0].bytes + (std::size_t{1} << 20));
  }
}

TEST(CutProgramTest, DevicesShareOnlyLargePrograms) {
  const auto parts = [](std::int64_t side) {
    const Program program = ProgramOf(Problem(DType::kF32, {side, side}, {1, 0}));
    return CutProgram(program, PlanMemory(program), std::size_t{1} << 40, CutOptions())->MaxParts();
  };
  EXPECT_EQ(parts(2048), 1);
  EXPECT_EQ(parts(4096), 2);
  EXPECT_EQ(parts(8192), 8);
}

}  // namespace
}  // namespace warpline
