#include "client/bench/values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/src/enum_names.h"
#include "kernels/cpu/launchers.h"
#include "kernels/cpu/real.h"
#include "kernels/status_macros.h"
#include "kernels/unit_roundoff.h"

namespace warpline::client {
namespace {

// SplitMix64: a sufficiently good bijection of 64-bit values, the same in every run.
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

template <typename T>
void Put(void* data, std::int64_t index, T value) {
  std::memcpy(static_cast<char*>(data) + static_cast<std::size_t>(index) * sizeof(T), &value, sizeof(T));
}

// The largest magnitude that FillSmall writes.
constexpr double kGreatest = 4;

// Checks that element `index` equals the reference, apart from the rounding of the result and `slack`. The
// summed values are small integers, whose sums are exact in most orders. A server may add them in f32.
absl::Status Compare(const Array& array, std::int64_t index, const void* expected,
                     std::int64_t expected_index, double slack = 0) {
  const double got = ElementAt(array.dtype(), array.data(), index);
  const double want = ElementAt(array.dtype(), expected, expected_index);
  const double roundoff = UnitRoundoff(array.dtype());
  const bool is_rounded = roundoff > 0 && std::isfinite(want);
  const double tolerance = is_rounded ? (2 * roundoff + 0x1p-22) * std::abs(want) + slack : 0;
  if (got == want || std::abs(got - want) <= tolerance || (std::isnan(got) && std::isnan(want))) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrCat("wrong result: element ", index, " is ", got, " instead of ", want));
}

absl::Status CheckShape(const Array& array, const Shape& shape) {
  if (array.shape().Count() == shape.Count()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("wrong result: shape ", ToString(array.shape()), " instead of ", ToString(shape)));
}

ReduceOp OperationOf(v1::ReduceOp op) {
  return *std::find_if(kAllReduceOps.begin(), kAllReduceOps.end(), [op](ReduceOp each) {
    return EnumValueNamed(*v1::ReduceOp_descriptor(), Name(each)) == op;
  });
}

}  // namespace

void FillDistinct(DType dtype, void* data, std::int64_t count) {
  const bool is_complex = dtype == DType::kC64 || dtype == DType::kC128;
  const std::size_t size = is_complex ? SizeOf(dtype) / 2 : SizeOf(dtype);
  const std::int64_t numbers = is_complex ? count * 2 : count;
  for (std::int64_t i = 0; i < numbers; ++i) {
    // The two highest bits (sign and top of the exponent) are 0, so the value is not a NaN in any type.
    const std::uint64_t bits = Mix(static_cast<std::uint64_t>(i)) >> 2;
    if (size == 1) Put(data, i, static_cast<std::uint8_t>(bits >> (dtype == DType::kBool ? 61 : 56)));
    if (size == 2) Put(data, i, static_cast<std::uint16_t>(bits >> 48));
    if (size == 4) Put(data, i, static_cast<std::uint32_t>(bits >> 32));
    if (size == 8) Put(data, i, bits);
  }
}

void FillSmall(DType dtype, void* data, std::int64_t count, std::uint64_t seed) {
  if (!IsReal(dtype)) {
    // No operation computes with these types.
    std::memset(data, 0, static_cast<std::size_t>(count) * SizeOf(dtype));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t which = Mix(static_cast<std::uint64_t>(i) ^ seed << 48) % 5;
    cpu::StoreReal(dtype, data, i, static_cast<std::int64_t>(which) - (IsUnsigned(dtype) ? 0 : 2));
  }
}

double ElementAt(DType dtype, const void* data, std::int64_t index) {
  return cpu::LoadReal<double>(dtype, data, index);
}

absl::Status CheckTranspose(const TransposeArgs& args, const Array& y) {
  TransposeProblem problem{.dtype = args.x.dtype, .shape = args.x.shape};
  const int rank = problem.shape.rank;
  for (int axis = 0; axis < rank; ++axis) problem.perm[axis] = static_cast<std::int8_t>(axis);
  if (rank >= 2) std::swap(problem.perm[rank - 1], problem.perm[rank - 2]);
  if (y.shape() != problem.OutputShape() || y.dtype() != problem.dtype) {
    return absl::InternalError(absl::StrCat("wrong result: shape ", ToString(y.shape())));
  }
  std::vector<char> expected(y.bytes());
  cpu::TransposeReference(problem, {.in = {args.x.data}, .out = expected.data()});
  const auto* got = static_cast<const char*>(y.data());
  const auto differs = std::mismatch(expected.begin(), expected.end(), got).first;
  if (differs == expected.end()) return absl::OkStatus();
  const std::size_t element = static_cast<std::size_t>(differs - expected.begin()) / SizeOf(y.dtype());
  return absl::InternalError(absl::StrCat("wrong result: element ", element, " is not that of the input"));
}

absl::Status CheckGemm(const GemmArgs& args, const Array& d) {
  constexpr std::uint64_t kSamples = 64;
  const std::int64_t m = args.a.shape[0], k = args.a.shape[1], n = args.b.shape[1];
  RETURN_IF_ERROR(CheckShape(d, {m, n}));
  if (m * n == 0) return absl::OkStatus();
  // Each sample computes one element: a row of a times a column of b.
  const GemmProblem problem{
      .dtype = args.a.dtype, .out_dtype = d.dtype(), .m = 1, .n = 1, .k = k, .lda = k, .ldb = n};
  const StepScalars scalars;
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    const auto index = static_cast<std::int64_t>(Mix(sample) % static_cast<std::uint64_t>(m * n));
    const std::size_t size = SizeOf(args.a.dtype);
    const auto* a = static_cast<const char*>(args.a.data) + static_cast<std::size_t>(index / n * k) * size;
    const auto* b = static_cast<const char*>(args.b.data) + static_cast<std::size_t>(index % n) * size;
    double expected = 0;  // room for any type
    cpu::GemmReference(problem, {.in = {a, b}, .out = &expected, .scalars = &scalars});
    RETURN_IF_ERROR(Compare(d, index, &expected, 0));
  }
  return absl::OkStatus();
}

absl::Status CheckReduce(const ReduceArgs& args, const Array& y) {
  ReduceProblem problem{
      .op = OperationOf(args.op), .dtype = args.x.dtype, .shape = args.x.shape, .out_dtype = y.dtype()};
  if (args.axes.empty()) problem.axes_mask = (1u << problem.shape.rank) - 1;
  for (int axis : args.axes) problem.axes_mask |= 1u << (axis < 0 ? axis + problem.shape.rank : axis);
  const Shape shape = problem.OutputShape(false);
  RETURN_IF_ERROR(CheckShape(y, shape));
  if (problem.ReducedCount() == 0) return absl::OkStatus();
  std::vector<char> expected(y.bytes());
  cpu::ReduceReference(problem, {.in = {args.x.data}, .out = expected.data()});
  // The logarithm is added to the largest element. Both may nearly cancel.
  const double slack = problem.op == ReduceOp::kLogSumExp ? 0x1p-22 * (1 + kGreatest) : 0;
  for (std::int64_t i = 0; i < shape.Count(); ++i) {
    RETURN_IF_ERROR(Compare(y, i, expected.data(), i, slack));
  }
  return absl::OkStatus();
}

}  // namespace warpline::client
