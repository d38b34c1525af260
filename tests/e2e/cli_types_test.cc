// Tests for the results that the program computes from files of every element type.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/e2e/cli.h"
#include "tests/e2e/ndarray.h"

namespace warpline {

template <>
inline const char* DescrOf<std::int8_t>() {
  return "|i1";
}
template <>
inline const char* DescrOf<std::uint64_t>() {
  return "<u8";
}
// std::uint8_t is otherwise unused, so it stands for bool: elements that are 0 or 1.
template <>
inline const char* DescrOf<std::uint8_t>() {
  return "|b1";
}

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CliTypesTest : public CliTest {
 protected:
  // Runs the command, which must succeed and write y.npy.
  template <typename T>
  Ndarray<T> Compute(const std::string& command) const {
    const Finished finished = Run("warpline " + command + " -o y.npy");
    EXPECT_EQ(finished.code, 0) << command << "\n" << finished.err;
    return finished.code == 0 ? FromNpy<T>(Get("y.npy")) : Ndarray<T>();
  }

  // A matrix of 2 x 3 elements of `size` bytes, as a file; `transposed` gives that of 3 x 2.
  static std::string Matrix(const std::string& descr, std::size_t size, bool transposed) {
    std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
    header += transposed ? "3, 2), }" : "2, 3), }";
    // The padding is that of files that the program writes.
    header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
    header += '\n';
    std::string bytes("\x93NUMPY\1\0", 8);
    bytes += {static_cast<char>(header.size()), '\0'};
    bytes += header;
    for (std::size_t i = 0; i < 6; ++i) {
      const std::size_t element = transposed ? i % 2 * 3 + i / 2 : i;
      for (std::size_t k = 0; k < size; ++k)
        bytes += static_cast<char>(descr == "|b1" ? element % 2 : element * 16 + k);
    }
    return bytes;
  }
};

TEST_F(CliTypesTest, TransposesEveryType) {
  const std::pair<const char*, std::size_t> types[] = {
      {"|b1", 1}, {"|u1", 1}, {"<u2", 2}, {"<u4", 4}, {"<u8", 8}, {"|i1", 1}, {"<i2", 2},
      {"<i4", 4}, {"<i8", 8}, {"<f2", 2}, {"<f4", 4}, {"<f8", 8}, {"<c8", 8}, {"<c16", 16}};
  for (const auto& [descr, size] : types) {
    Put("x.npy", Matrix(descr, size, false));
    const Finished finished = Run("warpline transpose x.npy -o y.npy");
    EXPECT_EQ(finished.code, 0) << descr << "\n" << finished.err;
    EXPECT_EQ(Get("y.npy"), Matrix(descr, size, true)) << descr;
  }
  Put("x.npy", Matrix("|V1", 1, false));
  for (const char* type : {"f8e4m3", "f8e5m2"}) {
    EXPECT_EQ(Run(std::string("warpline transpose x.npy -o y.npy --dtype ") + type).code, 0) << type;
    EXPECT_EQ(Get("y.npy"), Matrix("|V1", 1, true)) << type;
  }
  const Finished finished = Run("warpline transpose x.npy -o y.npy");
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("--dtype f8e4m3 or f8e5m2"));
}

TEST_F(CliTypesTest, KnowsEveryReduction) {
  const Ndarray<double> x{{2, 4}, {1, -3, 0, 4, 2, 2, 2, 2}};
  Put("x.npy", ToNpy(x));
  const auto floats = [&](const std::string& flags) {
    return Compute<double>("reduce x.npy --axes 1 --op " + flags).values;
  };
  using ::testing::DoubleNear;
  using ::testing::ElementsAre;
  EXPECT_THAT(floats("sum"), ElementsAre(2, 8));
  EXPECT_THAT(floats("prod"), ElementsAre(0, 16));
  EXPECT_THAT(floats("min"), ElementsAre(-3, 2));
  EXPECT_THAT(floats("max"), ElementsAre(4, 2));
  EXPECT_THAT(floats("mean"), ElementsAre(0.5, 2));
  EXPECT_THAT(floats("norm1"), ElementsAre(8, 8));
  EXPECT_THAT(floats("norm2"), ElementsAre(DoubleNear(std::sqrt(26.0), 1e-12), 4));
  EXPECT_THAT(floats("norminf"), ElementsAre(4, 2));
  EXPECT_THAT(floats("sumsq"), ElementsAre(26, 16));
  EXPECT_THAT(floats("var"), ElementsAre(6.25, 0));
  EXPECT_THAT(floats("std"), ElementsAre(2.5, 0));
  EXPECT_THAT(floats("var --ddof 1"), ElementsAre(DoubleNear(25.0 / 3, 1e-12), 0));
  const double logsumexp = std::log(std::exp(1.0) + std::exp(-3.0) + 1 + std::exp(4.0));
  EXPECT_THAT(floats("logsumexp"),
              ElementsAre(DoubleNear(logsumexp, 1e-12), DoubleNear(2 + std::log(4.0), 1e-12)));
  const auto indices = [&](const std::string& op) {
    return Compute<std::int64_t>("reduce x.npy --axes 1 --op " + op).values;
  };
  EXPECT_THAT(indices("argmin"), ElementsAre(1, 0));
  EXPECT_THAT(indices("argmax"), ElementsAre(3, 0));
  EXPECT_THAT(indices("count_nonzero"), ElementsAre(3, 4));
  const auto truths = [&](const std::string& op) {
    return Compute<std::uint8_t>("reduce x.npy --axes 1 --op " + op).values;
  };
  EXPECT_THAT(truths("any"), ElementsAre(1, 1));
  EXPECT_THAT(truths("all"), ElementsAre(0, 1));
}

TEST_F(CliTypesTest, FindsTheFirstLeastInRowMajorOrder) {
  Ndarray<double> x = Zeros<double>({3, 4, 2});
  for (const Sizes& at : {Sizes{1, 3, 1}, Sizes{2, 0, 0}}) x.at(at) = -5;
  for (const bool fortran : {false, true}) {
    Put("x.npy", ToNpy(x, fortran));
    EXPECT_EQ(Compute<std::int64_t>("reduce x.npy --op argmin").values, std::vector<std::int64_t>{15})
        << fortran;
  }
}

TEST_F(CliTypesTest, GivesIntegersTheirWidestTypeOrTheOneAskedFor) {
  Put("x.npy", ToNpy(Ndarray<std::int8_t>{{3}, {127, 127, -1}}));
  EXPECT_EQ(Compute<std::int64_t>("reduce x.npy --op sum"), (Ndarray<std::int64_t>{{}, {253}}));
  EXPECT_EQ(Compute<std::int8_t>("reduce x.npy --op sum --out-dtype i8"), (Ndarray<std::int8_t>{{}, {-3}}));
  Put("x.npy", ToNpy(Ndarray<std::uint64_t>{{2}, {1ull << 63, 5}}));
  EXPECT_EQ(Compute<std::uint64_t>("reduce x.npy --op sum"),
            (Ndarray<std::uint64_t>{{}, {(1ull << 63) + 5}}));
  Put("x.npy", ToNpy(Ndarray<std::uint8_t>{{3}, {1, 0, 1}}));
  EXPECT_EQ(Compute<std::int64_t>("reduce x.npy --op sum"), (Ndarray<std::int64_t>{{}, {2}}));
  EXPECT_EQ(Compute<double>("reduce x.npy --op mean").values[0], 2.0 / 3);
}

TEST_F(CliTypesTest, MultipliesBytesIntoI32) {
  Put("a.npy", ToNpy(Ndarray<std::int8_t>{{1, 2}, {-128, 127}}));
  Put("b.npy", ToNpy(Ndarray<std::int8_t>{{2, 1}, {-128, 127}}));
  EXPECT_EQ(Compute<std::int32_t>("gemm a.npy b.npy"),
            (Ndarray<std::int32_t>{{1, 1}, {128 * 128 + 127 * 127}}));
  Put("c.npy", ToNpy(Ndarray<std::int32_t>{{1, 1}, {1}}));
  EXPECT_EQ(Compute<std::int32_t>("gemm a.npy b.npy --c c.npy --alpha -1 --dtype i8"),
            (Ndarray<std::int32_t>{{1, 1}, {1 - 128 * 128 - 127 * 127}}));
}

TEST_F(CliTypesTest, AppliesBiasAndActivation) {
  Put("a.npy", ToNpy(Ndarray<float>{{2, 1}, {1, -1}}));
  Put("b.npy", ToNpy(Ndarray<float>{{1, 2}, {2, 3}}));
  Put("v.npy", ToNpy(Ndarray<float>{{2}, {10, -1}}));
  EXPECT_EQ(Compute<float>("gemm a.npy b.npy --bias v.npy"), (Ndarray<float>{{2, 2}, {12, 2, 8, -4}}));
  EXPECT_EQ(Compute<float>("gemm a.npy b.npy --bias v.npy --activation relu"),
            (Ndarray<float>{{2, 2}, {12, 2, 8, 0}}));
  const auto gelu = Compute<float>("gemm a.npy b.npy --activation gelu");
  EXPECT_NEAR(gelu.values[0], 1.954598, 1e-5);
  EXPECT_NEAR(gelu.values[3], -0.003637, 1e-5);
}

TEST_F(CliTypesTest, TakesBiasAndCInTheTypeOfTheResult) {
  // bf16 1 and 2; the files of the result's type are f32, whatever --dtype says of the others.
  Put("a.npy", ToNpy(Ndarray<std::uint16_t>{{1, 1}, {0x3f80}}));
  Put("b.npy", ToNpy(Ndarray<std::uint16_t>{{1, 1}, {0x4000}}));
  Put("v.npy", ToNpy(Ndarray<float>{{1}, {0.125f}}));
  Put("c.npy", ToNpy(Ndarray<float>{{1, 1}, {1024}}));
  EXPECT_EQ(Compute<float>("gemm a.npy b.npy --dtype bf16 --out-dtype f32 --bias v.npy --c c.npy"),
            (Ndarray<float>{{1, 1}, {1026.125f}}));
  const Finished finished = Run("warpline gemm a.npy b.npy --dtype bf16 --bias v.npy -o y.npy");
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("v.npy: dtype '<f4' is not bf16"));
}

TEST_F(CliTypesTest, LeavesTypesThatAnOperationHasNotToTheServer) {
  Put("x.npy", Matrix("<c8", 8, false));
  const Finished finished = Run("warpline reduce x.npy --op max -o y.npy");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err,
              AllOf(StartsWith("warpline: INVALID_ARGUMENT: "), HasSubstr("complex numbers have no order")));
}

}  // namespace
}  // namespace warpline
