// Tests what ordinary data does not show: NaN and infinities, ties, operands that must not be read, programs
// of several steps. The first tests are over every variant and dtype, as those of conformance_shapes.cc.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "tests/kernels/conformance.h"
#include "tests/testing/map_reference.h"
#include "tests/testing/random_tensor.h"
#include "tests/testing/reference.h"
#include "tests/testing/shapes.h"

namespace warpline::testing {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Counts of the test that runs: problems that its variant has computed, and problems that it cannot run.
int checked = 0, refused = 0;

// A test made from a function.
class FunctionTest : public ::testing::Test {
 public:
  explicit FunctionTest(std::function<void()> body) : body_(std::move(body)) {}
  void TestBody() override {
    checked = refused = 0;
    body_();
    if (checked == 0 && refused > 0) GTEST_SKIP() << "the variant can run none of these problems";
  }

 private:
  const std::function<void()> body_;
};

// Checks the problem if the variant can run it.
void ExpectConforms(Harness& harness, const Problem& problem, std::string_view variant,
                    const std::vector<Bytes>& inputs, const StepScalars& scalars = {}) {
  if (!harness.backend().CheckVariant(problem, variant).ok()) {
    ++refused;
    return;
  }
  ++checked;
  const std::string error = Check(harness, problem, variant, inputs, {scalars});
  if (!error.empty()) ADD_FAILURE() << error;
}

void PropagatesSpecialValues(Backend& backend, std::string_view variant, DType dtype) {
  Harness harness(backend);
  std::uint64_t seed = 0;
  for (ReduceOp op : kAllReduceOps) {
    for (const Shape& shape : {Shape{7}, Shape{33, 65}, Shape{1031, 3}, Shape{3, 5, 7}}) {
      for (std::uint32_t mask = 1; mask < 1u << shape.rank; ++mask) {
        const Bytes x = RandomTensorWithSpecials(dtype, shape.Count(), ++seed);
        if (IsArg(op) && std::popcount(mask) > 1 && std::popcount(mask) < shape.rank) continue;
        ExpectConforms(harness, ReduceProblem{op, dtype, shape, mask, {}, 0, 0}, variant, {x});
      }
    }
  }
}

// A single NaN or infinity in every place of a sum: vector lanes, tails and partial results all see it.
void PropagatesFromEveryPlace(Backend& backend, std::string_view variant, DType dtype) {
  Harness harness(backend);
  const Shape shape{67, 67};
  for (long double special :
       {std::numeric_limits<long double>::quiet_NaN(), std::numeric_limits<long double>::infinity(),
        -std::numeric_limits<long double>::infinity()}) {
    Bytes x = RandomTensor(dtype, shape.Count(), 1);
    for (std::int64_t i = 0; i < shape[0]; ++i) Store(dtype, special, x, i * shape[1] + i);
    for (ReduceOp op : kAllReduceOps) {
      for (std::uint32_t mask : {1u, 2u}) {
        ExpectConforms(harness, ReduceProblem{op, dtype, shape, mask, {}, 0, 0}, variant, {x});
      }
    }
  }
}

// One element that is far from all the others, in every kind of place.
void VarianceBearsAnOutlier(Backend& backend, std::string_view variant, DType dtype) {
  Harness harness(backend);
  const Shape shape{100003};
  for (std::int64_t at : {0, 1, 50000, 100002}) {
    Bytes x = RandomTensor(dtype, shape.Count(), 1);
    Store(dtype, dtype == DType::kF16 ? 6e4L : 1e9L, x, at);
    for (ReduceOp op : {ReduceOp::kVar, ReduceOp::kStd}) {
      // The type of the result decides which kernel it is.
      for (DType out_dtype : {DType::kF64, dtype}) {
        if (out_dtype == DType::kF16) continue;  // beyond its range
        ExpectConforms(harness, ReduceProblem{op, dtype, shape, 1, out_dtype, 0, 1}, variant, {x});
      }
    }
  }
}

void TakesTheFirstOfEquals(Backend& backend, std::string_view variant, DType dtype) {
  Harness harness(backend);
  for (const Shape& shape : {Shape{5}, Shape{1031}, Shape{33, 65}, Shape{257, 4}, Shape{100003}}) {
    for (int distinct : {1, 2, 3}) {  // so few values that every result has rivals; 0 is -0 now and then
      std::vector<long double> values(shape.Count());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto value = static_cast<long double>((i * 7919 + i / 13) % distinct);
        values[i] = value == 0 && i % 2 == 0 ? -0.0L : value;
      }
      for (std::uint32_t mask = 1; mask < 1u << shape.rank; ++mask) {
        for (ReduceOp op : {ReduceOp::kArgmin, ReduceOp::kArgmax}) {
          ExpectConforms(harness, ReduceProblem{op, dtype, shape, mask, {}, 0, 0}, variant,
                         {Pack(dtype, values)});
        }
      }
    }
  }
}

// Sizes below, at and above tiles, for properties that do not depend on them.
std::vector<GemmProblem> SomeGemms(DType dtype) {
  return {MakeGemm(dtype, 3, 5, 7), MakeGemm(dtype, 33, 65, 31, 3), MakeGemm(dtype, 128, 128, 64),
          MakeGemm(dtype, 1, 128, 32)};
}

StepScalars WithFactors(float alpha, float beta) {
  return {.alpha_f32 = alpha, .beta_f32 = beta, .alpha_f64 = alpha, .beta_f64 = beta};
}

void DoesNotReadCForZeroBeta(Backend& backend, std::string_view variant, DType dtype) {
  Harness harness(backend);
  for (GemmProblem p : SomeGemms(dtype)) {
    p.has_c = true;
    std::vector<Bytes> operands = RandomGemmOperands(p, 1);
    for (std::int64_t i = 0; i < ElementsOfC(p); ++i) Store(dtype, kNaN, operands[2], i);
    ExpectConforms(harness, p, variant, operands, WithFactors(1.5f, 0));
  }
}

// A library may take C for D and return without a write. D holds what was in its memory before.
void WritesDForZeroAlpha(Backend& backend, std::string_view variant, DType dtype) {
  Harness harness(backend);
  std::vector<GemmProblem> problems = SomeGemms(dtype);
  for (const auto& [m, n] : {std::pair(1, 1), {1, 64}, {64, 1}, {2, 64}, {64, 2}, {4, 5}}) {
    problems.push_back(MakeGemm(dtype, m, n, 48));
  }
  for (GemmProblem p : problems) {
    for (bool has_c : {false, true}) {
      p.has_c = has_c;
      StepScalars scalars = WithFactors(0, has_c ? 1 : 0);
      scalars.alpha_i64 = 0;
      scalars.beta_i64 = has_c ? 1 : 0;
      ExpectConforms(harness, p, variant, RandomGemmOperands(p, 1), scalars);
    }
  }
}

void KeepsNaNScalars(Backend& backend, std::string_view variant, DType dtype) {
  Harness harness(backend);
  for (GemmProblem p : SomeGemms(dtype)) {
    ExpectConforms(harness, p, variant, RandomGemmOperands(p, 1), WithFactors(kNaN, 0));
    p.has_c = true;
    ExpectConforms(harness, p, variant, RandomGemmOperands(p, 2), WithFactors(1, kNaN));
  }
}

void KeepsNaNOperands(Backend& backend, std::string_view variant, DType dtype) {
  Harness harness(backend);
  for (const GemmProblem& p : SomeGemms(dtype)) {
    std::vector<Bytes> operands = RandomGemmOperands(p, 1);
    Store(dtype, kNaN, operands[0], p.k - 1);                                    // row 0 of D
    Store(dtype, std::numeric_limits<float>::infinity(), operands[1], p.n - 1);  // the last column of D
    ExpectConforms(harness, p, variant, operands, {});
  }
}

void SumsNothingToZero(Backend& backend, std::string_view variant, DType dtype) {
  Harness harness(backend);
  for (bool has_c : {false, true}) {
    for (float beta : {0.0f, 2.0f}) {
      GemmProblem p = MakeGemm(dtype, 33, 65, 0, 3);
      p.has_c = has_c;
      p.batch = GemmBatch::Dense(2);
      for (float alpha : {1.0f, kNaN}) {
        ExpectConforms(harness, p, variant, RandomGemmOperands(p, 1), WithFactors(alpha, beta));
      }
    }
  }
}

// Changes the scalars between launches, as a captured graph must allow: the scalars are data.
void ScalarsChangeBetweenLaunches(Backend& backend, std::string_view variant, DType dtype) {
  Harness harness(backend);
  GemmProblem p = MakeGemm(dtype, 33, 65, 31);
  p.has_c = true;
  for (const auto& [alpha, beta] : {std::pair(1.0f, 0.0f), {2.0f, 1.0f}, {-0.25f, 0.0f}, {1.0f, -3.0f}}) {
    ExpectConforms(harness, p, variant, RandomGemmOperands(p, 1), WithFactors(alpha, beta));
  }
}

// sum over rows of (x^T b), with the intermediate results in scratch memory, and the product returned too.
void RunsProgramsOfSeveralSteps(Backend& backend) {
  Harness harness(backend);
  const DType f64 = DType::kF64;
  const TransposeProblem transpose{f64, {33, 65}, {1, 0}, 0};
  const GemmProblem gemm = MakeGemm(f64, 65, 129, 33);
  const ReduceProblem sum{ReduceOp::kSum, f64, {65, 129}, 1, {}, 0, 0};
  const auto spec = [](const Shape& shape) {
    return TensorSpec{DType::kF64, shape, static_cast<std::size_t>(shape.Count()) * sizeof(double)};
  };
  Program program;
  program.tensors = {spec({33, 65}), spec({33, 129}), spec({65, 33}), spec({65, 129}), spec({129})};
  program.num_inputs = 2;
  program.steps = {{transpose, "", {0}, 2, {}}, {gemm, "", {2, 1}, 3, {}}, {sum, "", {3}, 4, {}}};
  program.outputs = {4, 3};

  const Bytes x = RandomTensor(f64, 33 * 65, 1);
  const Bytes b = RandomTensor(f64, 33 * 129, 2);
  const absl::StatusOr<Outcome> outcome = harness.Run(program, {x, b});
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(outcome->variants.size(), 3u);
  const std::vector<long double> product = Gemm(gemm, {}, Transpose(transpose, x), b, {}, {}).values;
  const std::vector<long double> want = Reduce(sum, Pack(f64, product)).values;
  const std::vector<long double> got_product = Unpack(f64, outcome->outputs[1]);
  const std::vector<long double> got = Unpack(f64, outcome->outputs[0]);
  // Elements are at most 33 and sums at most 65 * 33: rounding stays far below this.
  for (std::size_t i = 0; i < product.size(); ++i) ASSERT_NEAR(got_product[i], product[i], 1e-12) << i;
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-10) << i;
}

// Such an array takes no memory, so a request of a few bytes may bring it; walking its rows would take hours.
void SumsManyEmptyRows(Backend& backend, std::string_view variant, DType dtype) {
  Harness harness(backend);
  for (std::int64_t row_stride : {0, 8}) {
    const ReduceProblem sum{ReduceOp::kSum, dtype, {std::int64_t{1} << 40, 0}, 3, {}, row_stride, 0};
    if (!backend.CheckVariant(sum, variant).ok()) {
      ++refused;
      continue;
    }
    ++checked;
    const absl::StatusOr<Outcome> outcome = harness.Run(MakeProgram(sum, variant), {Bytes()});
    ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
    EXPECT_EQ(outcome->outputs[0], Bytes(SizeOf(sum.OutDType()))) << row_stride;
  }
}

// Functions of complex numbers whose parts are zeros, infinities, NaN, small or large. The reference is
// std::complex<long double>, which follows Annex G of the C standard. Annex G leaves the signs of many zeros
// and infinities open, so only signs of other numbers count.
void FollowsAnnexG(Backend& backend, std::string_view variant, DType dtype) {
  if (!IsComplex(dtype)) return;
  Harness harness(backend);
  const std::vector<long double> parts = {0.0L,   -0.0L, 0.5L,   1,         -1,         3,
                                          1e-30L, 1e30L, -1e30L, kInfinity, -kInfinity, kNaN};
  std::vector<long double> numbers;
  for (const long double re : parts) {
    for (const long double im : parts) numbers.insert(numbers.end(), {re, im});
  }
  const Bytes x = Pack(PartOf(dtype), numbers);
  const auto count = std::ssize(numbers) / 2;
  for (std::size_t i = 0; i < kMapOps.size(); ++i) {
    const auto op = static_cast<MapOp>(i);
    if (RowOf(op).operands != 1 || !Has(RowOf(op).takes, dtype) || ResultOf(op, dtype) != dtype) continue;
    if (op == MapOp::kCast) continue;
    MapProblem problem;
    problem.dtype = dtype;
    problem.shape = {count};
    problem.inputs = {{.dtype = dtype, .strides = {1}}};
    problem.nodes = {{.op = op, .dtype = dtype, .operands = {0}}};
    if (!backend.CheckVariant(problem, variant).ok()) {
      ++refused;
      continue;
    }
    ++checked;
    const absl::StatusOr<Outcome> outcome = harness.Run(MakeProgram(problem, variant), {x});
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    const MapAnswer answer = Map(problem, {}, std::vector<Bytes>{x});
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      const long double want = answer.want.values[k],
                        got = Load(PartOf(dtype), outcome->outputs[0], static_cast<std::int64_t>(k));
      const bool same = std::isnan(want)   ? std::isnan(got)
                        : std::isinf(want) ? std::isinf(got)
                                           : std::fabs(want - got) <= answer.bounds[k];
      EXPECT_TRUE(same) << Name(op) << " of " << numbers[k / 2 * 2] << " + " << numbers[k / 2 * 2 + 1]
                        << "j, part " << k % 2 << ": got " << got << ", want " << want << " to within "
                        << answer.bounds[k];
    }
  }
}

using VariantTest = void (*)(Backend& backend, std::string_view variant, DType dtype);

// A program of two takes, one after the other: the first index out of range of the first step that has one.
// Then the same with indices in range.
void ReportsTheFirstBadIndex(Backend& backend) {
  Harness harness(backend);
  constexpr std::int64_t kCount = 100'000, kSize = 1000;
  const TakeProblem take{.dtype = DType::kF32,
                         .index_dtype = DType::kI64,
                         .shape = {kCount},
                         .index_strides = {1},
                         .axis_size = kSize,
                         .axis_stride = 1};
  TakeProblem again = take;
  again.axis_size = kCount;
  Program program;
  const TensorSpec numbers{DType::kF32, {kCount}, kCount * sizeof(float)};
  const TensorSpec places{DType::kI64, {kCount}, kCount * sizeof(std::int64_t)};
  program.tensors = {{DType::kF32, {kSize}, kSize * sizeof(float)}, places, places, numbers, numbers};
  program.num_inputs = 3;
  program.steps = {{.problem = take, .inputs = {0, 1}, .output = 3},
                   {.problem = again, .inputs = {3, 2}, .output = 4, .part_of = 1}};
  program.outputs = {4};
  const Bytes x = RandomTensor(DType::kF32, kSize, 1);
  const std::vector<long double> zeros(kCount, 0);
  const auto run = [&](const std::vector<std::pair<std::int64_t, std::int64_t>>& first,
                       const std::vector<std::pair<std::int64_t, std::int64_t>>& second) {
    std::vector<Bytes> inputs = {x, Pack(DType::kI64, zeros), Pack(DType::kI64, zeros)};
    for (const auto& [place, value] : first)
      Store(DType::kI64, static_cast<long double>(value), inputs[1], place);
    for (const auto& [place, value] : second)
      Store(DType::kI64, static_cast<long double>(value), inputs[2], place);
    return harness.Run(program, inputs, harness.NextIsShared());
  };
  const auto message = [](const absl::StatusOr<Outcome>& outcome) {
    return std::string(outcome.status().message());
  };
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(message(run({{99'999, -1001}, {70'001, kSize}, {70'002, kSize + 1}}, {{5, -kCount - 1}})),
              "program.steps[0].inputs[1]: element 70001 is 1000, which is outside of [-1000, 1000)");
    EXPECT_EQ(message(run({{99'999, -1000}}, {{7, kCount}, {5, -kCount - 1}})),
              "program.steps[1].inputs[1]: element 5 is -100001, which is outside of [-100000, 100000)");
    const absl::StatusOr<Outcome> good = run({{3, -1}}, {{0, 3}});
    ASSERT_TRUE(good.ok()) << good.status();
    EXPECT_EQ(Load(DType::kF32, good->outputs[0], 0), Load(DType::kF32, x, kSize - 1));
  }
}

void Register(std::string_view backend_name, const std::string& fact, const std::string& test,
              std::function<void()> body) {
  const std::string suite = std::string(backend_name) + "/" + fact;
  ::testing::RegisterTest(suite.c_str(), test.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [=]() -> ::testing::Test* { return new FunctionTest(body); });
}

}  // namespace

void RegisterSpecialTests(std::string_view backend_name, Backend* backend) {
  if (backend == nullptr) return;
  constexpr std::tuple<const char*, Op, bool, VariantTest> kTests[] = {
      {"ReducePropagatesSpecialValues", Op::kReduce, false, PropagatesSpecialValues},
      {"ReducePropagatesFromEveryPlace", Op::kReduce, true, PropagatesFromEveryPlace},
      {"VarianceBearsAnOutlier", Op::kReduce, true, VarianceBearsAnOutlier},
      {"ArgTakesTheFirstOfEquals", Op::kReduce, false, TakesTheFirstOfEquals},
      {"ReduceSumsManyEmptyRows", Op::kReduce, false, SumsManyEmptyRows},
      {"GemmDoesNotReadCForZeroBeta", Op::kGemm, true, DoesNotReadCForZeroBeta},
      {"GemmWritesDForZeroAlpha", Op::kGemm, false, WritesDForZeroAlpha},
      {"GemmKeepsNaNScalars", Op::kGemm, true, KeepsNaNScalars},
      {"GemmKeepsNaNOperands", Op::kGemm, true, KeepsNaNOperands},
      {"GemmSumsNothingToZero", Op::kGemm, true, SumsNothingToZero},
      {"MapFollowsAnnexG", Op::kMap, false, FollowsAnnexG},
      {"StepScalarsChangeBetweenLaunches", Op::kGemm, true, ScalarsChangeBetweenLaunches},
  };
  for (const VariantInfo& info : backend->Variants()) {
    const std::string variant(info.name);
    for (DType dtype : info.dtypes) {
      for (const auto& [fact, op, floats_only, test] : kTests) {
        if (op != info.op || (floats_only && !IsFloat(dtype))) continue;
        const VariantTest function = test;
        Register(backend_name, fact, variant + "/" + std::string(Name(dtype)),
                 [=] { function(*backend, variant, dtype); });
      }
    }
  }
  Register(backend_name, "Program", "ReportsTheFirstBadIndex", [=] { ReportsTheFirstBadIndex(*backend); });
  Register(backend_name, "Program", "RunsSeveralSteps", [=] { RunsProgramsOfSeveralSteps(*backend); });
}

}  // namespace warpline::testing
