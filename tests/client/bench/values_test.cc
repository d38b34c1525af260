#include "client/bench/values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace warpline::client {
namespace {

TEST(BenchValuesTest, TellsTheElementsOfTransposesApart) {
  for (DType dtype : kAllDTypes) {
    const std::size_t size = SizeOf(dtype);
    std::vector<char> memory(64 * size);
    FillDistinct(dtype, memory.data(), 64);
    std::set<std::string> seen;
    for (std::size_t i = 0; i < 64; ++i) seen.insert(std::string(&memory[i * size], size));
    // A byte has no room for more.
    EXPECT_GE(seen.size(), dtype == DType::kBool ? 2u : size == 1 ? 30u : 60u) << Name(dtype);
    EXPECT_LE(seen.size(), dtype == DType::kBool ? 2u : 64u) << Name(dtype);
  }
}

TEST(BenchValuesTest, FillsEveryRealTypeWithSmallNumbers) {
  for (DType dtype : kAllDTypes) {
    if (!IsReal(dtype)) continue;
    std::vector<char> memory(100 * SizeOf(dtype));
    FillSmall(dtype, memory.data(), 100, 1);
    std::set<double> seen;
    for (int i = 0; i < 100; ++i) seen.insert(ElementAt(dtype, memory.data(), i));
    const std::set<double> wanted = dtype == DType::kBool ? std::set<double>{0, 1}
                                    : IsUnsigned(dtype)   ? std::set<double>{0, 1, 2, 3, 4}
                                                          : std::set<double>{-2, -1, 0, 1, 2};
    EXPECT_EQ(seen, wanted) << Name(dtype);
  }
}

TEST(BenchValuesTest, KnowsTheResultOfEveryReduction) {
  const double x[] = {1, -3, 0, 4};
  const std::pair<v1::ReduceOp, double> results[] = {
      {v1::REDUCE_OP_SUM, 2},
      {v1::REDUCE_OP_PROD, 0},
      {v1::REDUCE_OP_MIN, -3},
      {v1::REDUCE_OP_MAX, 4},
      {v1::REDUCE_OP_MEAN, 0.5},
      {v1::REDUCE_OP_ARGMIN, 1},
      {v1::REDUCE_OP_ARGMAX, 3},
      {v1::REDUCE_OP_ANY, 1},
      {v1::REDUCE_OP_ALL, 0},
      {v1::REDUCE_OP_COUNT_NONZERO, 3},
      {v1::REDUCE_OP_NORM1, 8},
      {v1::REDUCE_OP_NORM2, std::sqrt(26.0)},
      {v1::REDUCE_OP_NORMINF, 4},
      {v1::REDUCE_OP_SUMSQ, 26},
      {v1::REDUCE_OP_VAR, 6.25},
      {v1::REDUCE_OP_STD, 2.5},
      {v1::REDUCE_OP_LOGSUMEXP, std::log(std::exp(1.0) + std::exp(-3.0) + 1 + std::exp(4.0))},
  };
  EXPECT_EQ(std::size(results), static_cast<std::size_t>(v1::ReduceOp_ARRAYSIZE - 1));
  for (const auto& [op, result] : results) {
    double y = result;
    const ReduceArgs args{.x = {DType::kF64, {4}, 0, x}, .op = op};
    EXPECT_TRUE(CheckReduce(args, Array::Over(DType::kF64, {}, &y, 8)).ok()) << v1::ReduceOp_Name(op);
    y += 0.01;
    EXPECT_FALSE(CheckReduce(args, Array::Over(DType::kF64, {}, &y, 8)).ok()) << v1::ReduceOp_Name(op);
  }
}

TEST(BenchValuesTest, TakesALogarithmThatWasComputedInSinglePrecision) {
  for (int i = 0; i < 125; ++i) {
    const float x[] = {static_cast<float>(i % 5 - 2), static_cast<float>(i / 5 % 5 - 2),
                       static_cast<float>(i / 25 - 2)};
    const float greatest = std::max({x[0], x[1], x[2]});
    const float sum = std::exp(x[0] - greatest) + std::exp(x[1] - greatest) + std::exp(x[2] - greatest);
    float y = greatest + std::log(sum);
    const ReduceArgs args{.x = {DType::kF32, {3}, 0, x}, .op = v1::REDUCE_OP_LOGSUMEXP};
    EXPECT_TRUE(CheckReduce(args, Array::Over(DType::kF32, {}, &y, sizeof(y))).ok()) << x[0] << x[1] << x[2];
    y += 1e-5f;
    EXPECT_FALSE(CheckReduce(args, Array::Over(DType::kF32, {}, &y, sizeof(y))).ok()) << x[0] << x[1] << x[2];
  }
}

TEST(BenchValuesTest, TakesInfinityForWhatTheTypeCannotHold) {
  const auto sum_is = [](DType dtype, float x, auto y) {
    const ReduceArgs args{.x = {DType::kF32, {1}, 0, &x}, .op = v1::REDUCE_OP_SUM};
    return CheckReduce(args, Array::Over(dtype, {}, &y, sizeof(y))).ok();
  };
  constexpr std::uint16_t kHalf = 0x7c00, kMinusHalf = 0xfc00, kBFloat = 0x7f80;
  EXPECT_TRUE(sum_is(DType::kF16, 131072, kHalf));
  EXPECT_TRUE(sum_is(DType::kF16, -131072, kMinusHalf));
  EXPECT_FALSE(sum_is(DType::kF16, 131072, kMinusHalf));
  EXPECT_FALSE(sum_is(DType::kF16, 60000, kHalf));
  EXPECT_FALSE(sum_is(DType::kBF16, 131072, kBFloat));
  EXPECT_TRUE(sum_is(DType::kBF16, std::numeric_limits<float>::max(), kBFloat));
  EXPECT_FALSE(sum_is(DType::kF64, 1, std::numeric_limits<double>::infinity()));

  // The sum is too large for f32.
  const float x[] = {3e38f, 3e38f};
  float y = std::numeric_limits<float>::infinity();
  const ReduceArgs args{.x = {DType::kF32, {2}, 0, x}, .op = v1::REDUCE_OP_SUM};
  EXPECT_TRUE(CheckReduce(args, Array::Over(DType::kF32, {}, &y, sizeof(y))).ok());
}

}  // namespace
}  // namespace warpline::client
