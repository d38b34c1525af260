// Tests that the program computes NumPy's results from files, whatever the order of the elements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/e2e/cli.h"
#include "tests/e2e/ndarray.h"

namespace warpline {
namespace {

using ::testing::HasSubstr;

class CliArraysTest : public CliTest {
 protected:
  // Runs the command, which must succeed and write y.npy.
  template <typename T>
  Ndarray<T> Compute(const std::string& command) const {
    const Finished finished = Run("warpline " + command + " -o y.npy");
    EXPECT_EQ(finished.code, 0) << command << "\n" << finished.err;
    return finished.code == 0 ? FromNpy<T>(Get("y.npy")) : Ndarray<T>();
  }
};

template <typename T>
Ndarray<T> Transposed(const Ndarray<T>& x, const std::vector<std::size_t>& perm) {
  Ndarray<T> y;
  for (std::size_t axis : perm) y.shape.push_back(x.shape[axis]);
  y.values.resize(x.values.size());
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const Sizes from = IndicesAt(x.shape, static_cast<std::int64_t>(i));
    Sizes to;
    for (std::size_t axis : perm) to.push_back(from[axis]);
    y.at(to) = x.values[i];
  }
  return y;
}

// The last two axes swapped.
template <typename T>
Ndarray<T> Swapped(const Ndarray<T>& x) {
  std::vector<std::size_t> perm(x.shape.size());
  for (std::size_t axis = 0; axis < perm.size(); ++axis) perm[axis] = axis;
  std::swap(perm[perm.size() - 2], perm[perm.size() - 1]);
  return Transposed(x, perm);
}

// alpha * a @ b + beta * c, with equal batches.
Ndarray<float> Product(const Ndarray<float>& a, const Ndarray<float>& b, const Ndarray<float>& c, float alpha,
                       float beta) {
  Ndarray<float> d = c;
  for (std::size_t i = 0; i < d.values.size(); ++i) {
    Sizes of_a = IndicesAt(d.shape, static_cast<std::int64_t>(i)), of_b = of_a;
    float sum = 0;
    for (std::int64_t k = 0; k < a.shape.back(); ++k) {
      of_a[of_a.size() - 1] = k;
      of_b[of_b.size() - 2] = k;
      sum += a.at(of_a) * b.at(of_b);
    }
    d.values[i] = alpha * sum + beta * c.values[i];
  }
  return d;
}

TEST_F(CliArraysTest, TransposesInEitherOrder) {
  const auto x = Numbers<std::int32_t>({2, 3, 4}, 1);
  for (const bool fortran : {false, true}) {
    Put("x.npy", ToNpy(x, fortran));
    EXPECT_EQ(Compute<std::int32_t>("transpose x.npy"), Swapped(x)) << fortran;
    EXPECT_EQ(Compute<std::int32_t>("transpose x.npy --perm 2,0,1"), Transposed(x, {2, 0, 1})) << fortran;
    EXPECT_EQ(Compute<std::int32_t>("transpose x.npy --perm=0,1,2"), x) << fortran;
    EXPECT_EQ(Compute<std::int32_t>("transpose x.npy --perm=-1,0,-2"), Transposed(x, {2, 0, 1})) << fortran;
  }
}

TEST_F(CliArraysTest, MultipliesMatricesInEitherOrder) {
  const auto a = Numbers<float>({3, 5}, 1), b = Numbers<float>({5, 4}, 2), c = Numbers<float>({3, 4}, 3);
  const auto d = Product(a, b, c, 2, -1);
  for (int which = 0; which < 32; ++which) {
    const bool trans_a = (which & 1) != 0, trans_b = (which & 2) != 0;
    Put("a.npy", ToNpy(trans_a ? Swapped(a) : a, (which & 4) != 0));
    Put("b.npy", ToNpy(trans_b ? Swapped(b) : b, (which & 8) != 0));
    Put("c.npy", ToNpy(c, (which & 16) != 0));
    const std::string command = std::string("gemm a.npy b.npy --c c.npy --alpha 2 --beta -1") +
                                (trans_a ? " --trans-a" : "") + (trans_b ? " --trans-b" : "");
    EXPECT_EQ(Compute<float>(command), d) << command << " " << which;
  }
}

TEST_F(CliArraysTest, MultipliesBatchesInEitherOrder) {
  const auto a = Numbers<float>({2, 3, 5}, 4), b = Numbers<float>({2, 5, 4}, 5);
  const auto c = Numbers<float>({2, 3, 4}, 6);
  for (const bool fortran : {false, true}) {
    Put("a.npy", ToNpy(a, fortran));
    Put("b.npy", ToNpy(Swapped(b), fortran));
    Put("c.npy", ToNpy(c, fortran));
    EXPECT_EQ(Compute<float>("gemm a.npy b.npy --trans-b --c c.npy --beta=3"), Product(a, b, c, 1, 3))
        << fortran;
  }
}

TEST_F(CliArraysTest, TakesBetaAsOneIfThereIsAC) {
  const auto a = Numbers<float>({3, 5}, 1), b = Numbers<float>({5, 4}, 2), c = Numbers<float>({3, 4}, 3);
  Put("a.npy", ToNpy(a));
  Put("b.npy", ToNpy(b));
  Put("c.npy", ToNpy(c));
  EXPECT_EQ(Compute<float>("gemm a.npy b.npy --c c.npy"), Product(a, b, c, 1, 1));
  EXPECT_EQ(Compute<float>("gemm a.npy b.npy"), Product(a, b, c, 1, 0));
  // C has no part in the result, so it may not even be there.
  EXPECT_EQ(Compute<float>("gemm a.npy b.npy --c missing.npy --beta 0"), Product(a, b, c, 1, 0));
  const Finished finished = Run("warpline gemm a.npy b.npy --beta 2 -o y.npy");
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("--beta needs --c"));
}

TEST_F(CliArraysTest, ReducesInEitherOrder) {
  const auto x = Numbers<float>({2, 3, 4}, 7);
  auto sum = Zeros<float>({3});
  auto most = Zeros<float>({2, 3, 1});
  std::fill(most.values.begin(), most.values.end(), -100.0f);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const Sizes at = IndicesAt(x.shape, static_cast<std::int64_t>(i));
    sum.at({at[1]}) += x.values[i];
    most.at({at[0], at[1], 0}) = std::max(most.at({at[0], at[1], 0}), x.values[i]);
  }
  for (const bool fortran : {false, true}) {
    Put("x.npy", ToNpy(x, fortran));
    EXPECT_EQ(Compute<float>("reduce x.npy --op sum --axes 0,-1"), sum) << fortran;
    EXPECT_EQ(Compute<float>("reduce x.npy --op max --axes 2 --keepdims"), most) << fortran;
    EXPECT_EQ(Compute<float>("reduce x.npy --op mean --axes 1").shape, (Sizes{2, 4})) << fortran;
  }
}

TEST_F(CliArraysTest, FindsTheFirstGreatestInRowMajorOrder) {
  auto x = Zeros<double>({3, 4, 2});
  // Equal ones: (2, 0, 0) would be the first of them in Fortran order.
  for (const Sizes& at : {Sizes{1, 3, 1}, Sizes{2, 0, 0}, Sizes{2, 3, 1}}) x.at(at) = 5;
  auto along = Zeros<std::int64_t>({3, 2});
  for (const Sizes& at : {Sizes{1, 1}, Sizes{2, 1}}) along.at(at) = 3;
  for (const bool fortran : {false, true}) {
    Put("x.npy", ToNpy(x, fortran));
    const auto flat = Compute<std::int64_t>("reduce x.npy --op argmax");
    EXPECT_EQ(flat.shape, Sizes{});
    EXPECT_THAT(flat.values, ::testing::ElementsAre(1 * 8 + 3 * 2 + 1)) << fortran;
    EXPECT_EQ(Compute<std::int64_t>("reduce x.npy --op argmax --axes 1"), along) << fortran;
    EXPECT_EQ(Compute<std::int64_t>("reduce x.npy --op argmax --keepdims").shape, (Sizes{1, 1, 1}))
        << fortran;
  }
}

TEST_F(CliArraysTest, BringsBf16ThereAndBack) {
  auto x = Zeros<std::uint16_t>({3, 5});
  for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] = static_cast<std::uint16_t>(0x3f80 + 37 * i);
  Put("x.npy", ToNpy(x));
  EXPECT_EQ(Compute<std::uint16_t>("transpose x.npy --dtype bf16"), Swapped(x));
  EXPECT_EQ(Run("warpline transpose y.npy --dtype bf16 -o back.npy").code, 0);
  EXPECT_EQ(FromNpy<std::uint16_t>(Get("back.npy")), x);
  const Finished finished = Run("warpline transpose x.npy -o y.npy");
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("--dtype bf16"));
}

TEST_F(CliArraysTest, SumsI32InI64) {
  Put("x.npy", ToNpy(Ndarray<std::int32_t>{{3}, {2147483647, 2147483647, -5}}));
  EXPECT_EQ(Compute<std::int64_t>("reduce x.npy --op sum"), (Ndarray<std::int64_t>{{}, {4294967289}}));
}

}  // namespace
}  // namespace warpline
