// Problems of awkward sizes: empty, one, one off a tile, prime, of every rank, with padded rows, and long
// enough in one axis to run past the limits of a launch grid.
#ifndef WARPLINE_TESTS_TESTING_SHAPES_H_
#define WARPLINE_TESTS_TESTING_SHAPES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/map/pair.h"
#include "kernels/problem.h"

namespace warpline::testing {

// More than the 65535 blocks that a launch grid can have in y and z.
inline constexpr std::int64_t kBeyondGrid = 70001;

// The row stride of a problem by its number, or 0: every third has padded rows; now by an odd number of
// elements, now by one that keeps alignment.
std::int64_t PaddedRow(const Shape& shape, std::size_t number);

// Around the tile sizes of kernels: 1, primes, and tile - 1, tile, tile + 1 for 32, 64 and 128.
std::vector<std::int64_t> AwkwardSizes();

// A gemm with `padding` elements after each row of every operand, leading dimensions set.
GemmProblem MakeGemm(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t padding = 0);
// The same with other transpositions, and so other leading dimensions.
GemmProblem WithTranspositions(GemmProblem problem, bool trans_a, bool trans_b);

std::vector<TransposeProblem> AwkwardTransposes(DType dtype);
// The transpositions of all matrices up to 64 x 64, dense.
std::vector<TransposeProblem> SmallMatrices(DType dtype);
// All combinations of transpositions, batch, padding and C for a few sizes; some of each for all sizes.
// For f32 also in tf32.
std::vector<GemmProblem> AwkwardGemms(DType dtype);
// Without those that are not defined: min, max or argmax of nothing. With every kind of result, ddof and
// padding by turns.
std::vector<ReduceProblem> AwkwardReductions(ReduceOp op, DType dtype);
// Reductions along columns of some 33 MiB whose rows are unaligned: kernels for long ones take no smaller.
std::vector<ReduceProblem> LongOddRows(ReduceOp op, DType dtype);
bool MeetsLongRows(ReduceOp op, DType dtype);
// Reductions of few rows of so many columns that they keep all threads of a device busy.
std::vector<ReduceProblem> FewLongRows(ReduceOp op, DType dtype);
bool MeetsFewRows(ReduceOp op, DType dtype);
// Casts to every type; sums of operands that are broadcast in every way.
// Casts, products with a number and sums.
std::vector<MapProblem> AwkwardPairs(PairOp op, DType dtype);

// "gemm f32 m=3 n=4 k=5 ..."
std::string Describe(const Problem& problem);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_TESTING_SHAPES_H_
