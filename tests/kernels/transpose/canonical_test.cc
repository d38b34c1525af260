#include "kernels/transpose/canonical.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace warpline {
namespace {

TransposeProblem Problem(const std::vector<std::int64_t>& dims, const std::vector<int>& perm) {
  TransposeProblem problem;
  for (std::int64_t dim : dims) problem.shape.Append(dim);
  for (std::size_t i = 0; i < perm.size(); ++i) problem.perm[i] = static_cast<std::int8_t>(perm[i]);
  return problem;
}

std::vector<std::int64_t> Dims(const CanonicalTranspose& t) {
  return {t.dims.begin(), t.dims.begin() + t.rank};
}
std::vector<int> Perm(const CanonicalTranspose& t) { return {t.perm.begin(), t.perm.begin() + t.rank}; }

using DimList = std::vector<std::int64_t>;
using PermList = std::vector<int>;

// For each element of the output, in order, its offset in the input; the strides of a walk are given.
DimList Gather(const DimList& out_dims, const DimList& in_strides) {
  DimList offsets = {0};
  for (std::size_t axis = 0; axis < out_dims.size(); ++axis) {
    DimList next;
    for (std::int64_t offset : offsets) {
      for (std::int64_t i = 0; i < out_dims[axis]; ++i) next.push_back(offset + i * in_strides[axis]);
    }
    offsets = std::move(next);
  }
  return offsets;
}

TEST(CanonicalTransposeTest, ScalarIsTheIdentity) { EXPECT_TRUE(Canonicalize(Problem({}, {})).IsIdentity()); }

TEST(CanonicalTransposeTest, UnmovedAxesFuseToTheIdentity) {
  const CanonicalTranspose t = Canonicalize(Problem({2, 3, 4}, {0, 1, 2}));
  EXPECT_TRUE(t.IsIdentity());
  EXPECT_EQ(Dims(t), DimList({24}));
}

TEST(CanonicalTransposeTest, MovedUnitAxesAreTheIdentity) {
  EXPECT_TRUE(Canonicalize(Problem({1, 7, 1}, {1, 2, 0})).IsIdentity());
  EXPECT_TRUE(Canonicalize(Problem({1, 1}, {1, 0})).IsIdentity());
}

TEST(CanonicalTransposeTest, MatrixStaysAMatrix) {
  const CanonicalTranspose t = Canonicalize(Problem({3, 5}, {1, 0}));
  EXPECT_EQ(Dims(t), DimList({3, 5}));
  EXPECT_EQ(Perm(t), PermList({1, 0}));
}

TEST(CanonicalTransposeTest, AxesAdjacentInBothOrdersFuse) {
  const CanonicalTranspose t = Canonicalize(Problem({2, 3, 4, 5}, {2, 3, 0, 1}));
  EXPECT_EQ(Dims(t), DimList({6, 20}));
  EXPECT_EQ(Perm(t), PermList({1, 0}));
}

TEST(CanonicalTransposeTest, AxesAdjacentButForAUnitAxisFuse) {
  const CanonicalTranspose t = Canonicalize(Problem({2, 1, 3, 5}, {3, 0, 2, 1}));
  EXPECT_EQ(Dims(t), DimList({6, 5}));
  EXPECT_EQ(Perm(t), PermList({1, 0}));
}

TEST(CanonicalTransposeTest, EmptyAxesAreKept) {
  const CanonicalTranspose t = Canonicalize(Problem({0, 3}, {1, 0}));
  EXPECT_EQ(Dims(t), DimList({0, 3}));
}

// Every permutation of rank 4 with every choice of unit axes: it moves the elements that the problem does.
TEST(CanonicalTransposeTest, MovesTheSameElements) {
  const DimList full = {2, 3, 4, 5};
  for (int units = 0; units < 16; ++units) {
    DimList dims = full;
    for (int axis = 0; axis < 4; ++axis) {
      if (units >> axis & 1) dims[axis] = 1;
    }
    PermList perm = {0, 1, 2, 3};
    do {
      const TransposeProblem problem = Problem(dims, perm);
      const CanonicalTranspose t = Canonicalize(problem);
      DimList out_dims, in_strides;
      for (int axis : perm) {
        std::int64_t stride = 1;
        for (int inner = axis + 1; inner < 4; ++inner) stride *= dims[inner];
        out_dims.push_back(dims[axis]);
        in_strides.push_back(stride);
      }
      DimList canonical_dims, canonical_strides;
      for (int i = 0; i < t.rank; ++i) {
        canonical_dims.push_back(t.dims[t.perm[i]]);
        canonical_strides.push_back(t.in_strides[t.perm[i]]);
        EXPECT_NE(canonical_dims.back(), 1);
        if (i > 0) {
          EXPECT_NE(t.perm[i], t.perm[i - 1] + 1);
        }
      }
      EXPECT_EQ(Gather(canonical_dims, canonical_strides), Gather(out_dims, in_strides))
          << ToString(problem.shape) << " perm " << perm[0] << perm[1] << perm[2] << perm[3];
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
}

TEST(CanonicalTransposeTest, PaddedRowsStayApart) {
  TransposeProblem problem = Problem({2, 3, 4}, {0, 1, 2});
  problem.row_stride = 5;
  const CanonicalTranspose t = Canonicalize(problem);
  EXPECT_EQ(Dims(t), DimList({6, 4}));
  EXPECT_EQ(t.in_strides[0], 5);
  EXPECT_EQ(t.in_strides[1], 1);
  EXPECT_FALSE(t.IsIdentity());
}

TEST(CanonicalTransposeTest, PaddedRowsOfOneElementAreNotContiguous) {
  TransposeProblem problem = Problem({6, 1}, {0, 1});
  problem.row_stride = 4;
  const CanonicalTranspose t = Canonicalize(problem);
  EXPECT_EQ(Dims(t), DimList({6}));
  EXPECT_FALSE(t.IsIdentity());
}

TEST(CanonicalTransposeTest, WiderElementsShortenTheInnermostAxis) {
  TransposeProblem problem = Problem({2, 3, 12}, {1, 0, 2});
  problem.row_stride = 16;
  const CanonicalTranspose t = WithWiderElements(Canonicalize(problem), 4);
  EXPECT_EQ(Dims(t), DimList({2, 3, 3}));
  EXPECT_EQ(t.in_strides[0], 12);
  EXPECT_EQ(t.in_strides[1], 4);
  EXPECT_EQ(t.in_strides[2], 1);
  EXPECT_EQ(t.perm[2], 2);
}

TEST(CanonicalTransposeTest, RowsOfOneWiderElementAreNoAxis) {
  const CanonicalTranspose t = WithWiderElements(Canonicalize(Problem({2, 3, 4}, {1, 0, 2})), 4);
  EXPECT_EQ(Dims(t), DimList({2, 3}));
  EXPECT_EQ(t.in_strides[0], 3);
  EXPECT_EQ(t.in_strides[1], 1);
  EXPECT_EQ(t.perm[0], 1);
  EXPECT_EQ(t.perm[1], 0);
}

TEST(CanonicalTransposeTest, OutputStridesInvertThePermutation) {
  const CanonicalTranspose t = Canonicalize(Problem({2, 3, 5}, {2, 1, 0}));
  EXPECT_EQ(t.OutputStrides()[0], 1);
  EXPECT_EQ(t.OutputStrides()[1], 2);
  EXPECT_EQ(t.OutputStrides()[2], 6);
}

}  // namespace
}  // namespace warpline
