#include "server/rpc/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/errors.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::ElementsAre;
using ::warpline::testing::IsOk;

constexpr std::int64_t kLimit = 1 << 20;
constexpr std::int64_t kHuge = std::int64_t{1} << 40;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What the scanner makes of a request: tensors whose content is a token, and the ranges of the payloads.
class Scanned {
 public:
  // With a payload of `bytes` bytes; none if negative.
  void Fill(v1::Tensor* tensor, v1::DataType data_type, const std::vector<std::int64_t>& shape,
            std::int64_t bytes) {
    tensor->set_data_type(data_type);
    for (std::int64_t size : shape) tensor->add_shape(size);
    if (bytes < 0) return;
    tensor->set_inline_(PayloadToken(payloads.size()));
    payloads.push_back({.slice = payloads.size(), .offset = 0, .length = static_cast<std::size_t>(bytes)});
  }
  void SetPayloadBytes(std::size_t index, std::size_t bytes) { payloads.at(index).length = bytes; }

  std::vector<PayloadRange> payloads;
};

// Valid requests, for tests to break: a 2 x 3 f32 array for x; a 2 x 3 times 3 x 4 product with a 2 x 4 c.
struct Transpose : Scanned {
  Transpose() { Fill(request.mutable_x(), v1::DATA_TYPE_F32, {2, 3}, 24); }
  v1::TransposeRequest request;
};

struct Reduce : Scanned {
  explicit Reduce(v1::DataType data_type = v1::DATA_TYPE_F32, const std::vector<std::int64_t>& shape = {2, 3},
                  std::int64_t bytes = 24) {
    Fill(request.mutable_x(), data_type, shape, bytes);
    request.set_op(v1::REDUCE_OP_SUM);
  }
  v1::ReduceRequest request;
};

struct Gemm : Scanned {
  Gemm() {
    Fill(request.mutable_a(), v1::DATA_TYPE_F32, {2, 3}, 24);
    Fill(request.mutable_b(), v1::DATA_TYPE_F32, {3, 4}, 48);
    Fill(request.mutable_c(), v1::DATA_TYPE_F32, {2, 4}, 32);
    request.set_beta(2);
  }
  // Another shape for a tensor, and the payload to go with it.
  void Reshape(v1::Tensor* tensor, std::size_t index, const std::vector<std::int64_t>& shape) {
    tensor->clear_shape();
    std::size_t bytes = 4;
    for (std::int64_t size : shape) {
      tensor->add_shape(size);
      bytes *= static_cast<std::size_t>(size);
    }
    SetPayloadBytes(index, bytes);
  }
  v1::GemmRequest request;
};

template <typename Request>
absl::StatusOr<Conversion> Convert(const Request& r, std::int64_t max_inline_bytes = kLimit) {
  return FromProto(r.request, r.payloads, {.max_inline_bytes = max_inline_bytes});
}

const TensorSpec& OutputOf(const Conversion& conversion) {
  return conversion.program.tensors.at(conversion.program.outputs.at(0));
}

template <typename ProblemT>
const ProblemT& ProblemOf(const Conversion& conversion) {
  return std::get<ProblemT>(conversion.program.steps.at(0).problem);
}

// A request broken in one way, and the answer to it.
template <typename Request>
struct BadCase {
  std::string name;
  std::function<void(Request&)> break_it;
  std::string field;
  std::string says;  // part of the message
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
};

template <typename Request>
void ExpectRefused(const std::vector<BadCase<Request>>& cases) {
  ASSERT_THAT(Convert(Request()), IsOk());
  for (const BadCase<Request>& bad : cases) {
    SCOPED_TRACE(bad.name);
    Request request;
    bad.break_it(request);
    const absl::Status status = Convert(request).status();
    EXPECT_EQ(status.code(), bad.code) << status;
    EXPECT_EQ(FieldOf(status), bad.field) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(bad.says));
  }
}

TEST(ConvertTest, BadTensorIsRefused) {
  const auto x = [](Transpose& r) { return r.request.mutable_x(); };
  ExpectRefused<Transpose>({
      {"no tensor", [](auto& r) { r.request.clear_x(); }, "x", "missing"},
      {"no data type", [&](auto& r) { x(r)->clear_data_type(); }, "x.data_type", "missing"},
      {"reserved data type", [&](auto& r) { x(r)->set_data_type(static_cast<v1::DataType>(7)); },
       "x.data_type", "unknown number 7"},
      {"negative data type", [&](auto& r) { x(r)->set_data_type(static_cast<v1::DataType>(-1)); },
       "x.data_type", "unknown number -1"},
      {"rank 9",
       [&](auto& r) {
         for (int i = 0; i < 7; ++i) x(r)->add_shape(1);
       },
       "x.shape", "rank 9 is above the limit of 8"},
      {"negative size", [&](auto& r) { x(r)->set_shape(1, -3); }, "x.shape", "axis 1 has size -3"},
      {"too many elements", [&](auto& r) { x(r)->set_shape(0, kHuge), x(r)->set_shape(1, kHuge); }, "x.shape",
       "2^63 bytes"},
      {"too many bytes", [&](auto& r) { x(r)->set_shape(0, kHuge), x(r)->set_shape(1, 1 << 21); }, "x.shape",
       "2^63 bytes"},
      {"too many elements but for a zero",
       [&](auto& r) { x(r)->set_shape(0, kHuge), x(r)->set_shape(1, kHuge), x(r)->add_shape(0); }, "x.shape",
       "2^63 bytes"},
      {"too few bytes", [](auto& r) { r.SetPayloadBytes(0, 23); }, "x.inline",
       "got 23 bytes; expected 24 bytes"},
      {"too many bytes sent", [](auto& r) { r.SetPayloadBytes(0, 25); }, "x.inline",
       "got 25 bytes; expected 24"},
      {"bytes for an empty array", [&](auto& r) { x(r)->set_shape(0, 0); }, "x.inline", "expected 0 bytes"},
      {"no source", [&](auto& r) { x(r)->clear_source(); }, "x.inline", "missing; expected 24 bytes"},
      {"stride below the last axis", [&](auto& r) { x(r)->set_row_stride(2); }, "x.row_stride", "2 is less"},
      {"negative stride", [&](auto& r) { x(r)->set_row_stride(-3); }, "x.row_stride", "-3 is less"},
      {"padded rows", [&](auto& r) { x(r)->set_row_stride(4); }, "x.row_stride", "4 for rows of 3",
       absl::StatusCode::kUnimplemented},
      {"variant of 65 bytes", [](auto& r) { r.request.set_variant(std::string(65, 'v')); }, "variant",
       "65 bytes is above the limit of 64"},
  });
}

TEST(ConvertTest, BadPermutationIsRefused) {
  const auto perm = [](std::vector<int> axes) {
    return [axes](Transpose& r) { r.request.mutable_perm()->Assign(axes.begin(), axes.end()); };
  };
  ExpectRefused<Transpose>({
      {"too short", perm({0}), "perm", "has 1 entries; x has rank 2"},
      {"too long", perm({0, 1, 2}), "perm", "has 3 entries; x has rank 2"},
      {"repeated axis", perm({1, 1}), "perm", "axis 1 is named twice"},
      {"axis out of range", perm({0, 2}), "perm", "entry 1 is 2"},
      {"negative axis", perm({0, -1}), "perm", "entry 1 is -1"},
  });
}

TEST(ConvertTest, BadGemmIsRefused) {
  ExpectRefused<Gemm>({
      {"no a", [](auto& r) { r.request.clear_a(); }, "a", "missing"},
      {"no b", [](auto& r) { r.request.clear_b(); }, "b", "missing"},
      {"no c for beta", [](auto& r) { r.request.clear_c(); }, "c", "beta is 2"},
      {"no c for beta NaN", [](auto& r) { r.request.clear_c(), r.request.set_beta(NAN); }, "c",
       "beta is nan"},
      {"i32", [](auto& r) { r.request.mutable_a()->set_data_type(v1::DATA_TYPE_I32); }, "a.data_type",
       "gemm does not take i32; supported: f16, bf16, f32, f64"},
      {"rank 1", [](auto& r) { r.Reshape(r.request.mutable_a(), 0, {3}); }, "a.shape", "rank 1 is below"},
      {"rank of b", [](auto& r) { r.Reshape(r.request.mutable_b(), 1, {3}); }, "b.shape",
       "rank 1, but a has rank 2"},
      {"rank of c",
       [](auto& r) {
         r.Reshape(r.request.mutable_c(), 2, {1, 2, 4});
       },
       "c.shape", "rank 3, but"},
      {"inner sizes",
       [](auto& r) {
         r.Reshape(r.request.mutable_b(), 1, {5, 4});
       },
       "b.shape", "inner size 5"},
      {"inner sizes with trans_a", [](auto& r) { r.request.set_trans_a(true); }, "b.shape",
       "[2,3] transposed, is 2"},
      {"inner sizes with trans_b", [](auto& r) { r.request.set_trans_b(true); }, "b.shape", "inner size 4"},
      {"shape of c",
       [](auto& r) {
         r.Reshape(r.request.mutable_c(), 2, {4, 2});
       },
       "c.shape", "[4,2], but the product is [2,4]"},
      {"data type of b",
       [](auto& r) { r.request.mutable_b()->set_data_type(v1::DATA_TYPE_F16), r.SetPayloadBytes(1, 24); },
       "b.data_type", "f16, but a has f32"},
      {"data type of c",
       [](auto& r) { r.request.mutable_c()->set_data_type(v1::DATA_TYPE_F64), r.SetPayloadBytes(2, 64); },
       "c.data_type", "f64, but a has f32"},
      {"batch axes",
       [](auto& r) {
         r.Reshape(r.request.mutable_a(), 0, {7, 2, 3}), r.Reshape(r.request.mutable_b(), 1, {6, 3, 4});
       },
       "b.shape", "batch axis 0 has size 6, but that of a has 7"},
      {"stride below the last axis", [](auto& r) { r.request.mutable_b()->set_row_stride(3); },
       "b.row_stride", "3 is less than the last axis, of size 4"},
      {"stride that overflows", [](auto& r) { r.request.mutable_a()->set_row_stride(kHuge * 1024 * 2048); },
       "a.shape", "2^63 bytes"},
      {"bytes without the padding of the last row",
       [](auto& r) { r.request.mutable_a()->set_row_stride(5), r.SetPayloadBytes(0, 32); }, "a.inline",
       "got 32 bytes; expected 40"},
      {"precision", [](auto& r) { r.request.set_precision(static_cast<v1::Precision>(3)); }, "precision",
       "number 3"},
      {"bytes of a c that beta does not need",
       [](auto& r) { r.request.set_beta(0), r.SetPayloadBytes(2, 31); }, "c.inline", "got 31 bytes"},
      {"shape of a c that beta does not need",
       [](auto& r) {
         r.request.set_beta(0), r.Reshape(r.request.mutable_c(), 2, {4, 2});
       },
       "c.shape", "[4,2]"},
      {"variant of 65 bytes", [](auto& r) { r.request.set_variant(std::string(65, 'v')); }, "variant", "64"},
  });
}

TEST(ConvertTest, BadReductionIsRefused) {
  const auto empty = [](v1::ReduceOp op) {
    return [op](Reduce& r) {
      r.request.mutable_x()->set_shape(1, 0), r.SetPayloadBytes(0, 0);
      r.request.set_op(op), r.request.add_axes(1);
    };
  };
  ExpectRefused<Reduce>({
      {"no tensor", [](auto& r) { r.request.clear_x(); }, "x", "missing"},
      {"no op", [](auto& r) { r.request.clear_op(); }, "op", "number 0"},
      {"reserved op", [](auto& r) { r.request.set_op(static_cast<v1::ReduceOp>(2)); }, "op", "number 2"},
      {"i64",
       [](auto& r) { r.request.mutable_x()->set_data_type(v1::DATA_TYPE_I64), r.SetPayloadBytes(0, 48); },
       "x.data_type", "reduce does not take i64; supported: i32, f16, bf16, f32, f64"},
      {"axis too high", [](auto& r) { r.request.add_axes(2); }, "axes", "axis 2 is outside of [-2, 2)"},
      {"axis too low", [](auto& r) { r.request.add_axes(-3); }, "axes", "axis -3 is outside"},
      {"repeated axis", [](auto& r) { r.request.add_axes(1), r.request.add_axes(-1); }, "axes",
       "axis -1 is named twice"},
      {"argmax over some axes",
       [](auto& r) {
         r.request.mutable_x()->add_shape(1), r.request.set_op(v1::REDUCE_OP_ARGMAX);
         r.request.add_axes(0), r.request.add_axes(2);
       },
       "axes", "argmax over 2 of 3 axes"},
      {"min of nothing", empty(v1::REDUCE_OP_MIN), "x.shape", "min over no elements of [2,0]"},
      {"max of nothing", empty(v1::REDUCE_OP_MAX), "x.shape", "max over no elements"},
      {"argmax of nothing", empty(v1::REDUCE_OP_ARGMAX), "x.shape", "argmax over no elements"},
      {"padded rows", [](auto& r) { r.request.mutable_x()->set_row_stride(4); }, "x.row_stride",
       "4 for rows of 3", absl::StatusCode::kUnimplemented},
      {"variant of 65 bytes", [](auto& r) { r.request.set_variant(std::string(65, 'v')); }, "variant", "64"},
  });
}

TEST(ConvertTest, InputsAboveTheLimitTogetherAreRefused) {
  EXPECT_THAT(Convert(Gemm(), 24 + 48 + 32), IsOk());
  const absl::Status status = Convert(Gemm(), 24 + 48 + 31).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(status), "c.inline");
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("take 104 bytes; the limit is 103"));
}

TEST(ConvertTest, ResultAboveTheLimitIsRefused) {
  Gemm outer;  // a column times a row
  outer.request.clear_c(), outer.request.clear_beta();
  outer.Reshape(outer.request.mutable_a(), 0, {20, 1});
  outer.Reshape(outer.request.mutable_b(), 1, {1, 20});
  EXPECT_THAT(Convert(outer, 1600), IsOk());
  const absl::Status status = Convert(outer, 1599).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(status), "a.shape");
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("takes 1600 bytes; the limit is 1599"));
}

TEST(ConvertTest, ResultWhoseBytesOverflowIsRefused) {
  Gemm outer;  // no elements in, 2^80 elements out
  outer.request.clear_c(), outer.request.clear_beta();
  outer.Reshape(outer.request.mutable_a(), 0, {kHuge, 0});
  outer.Reshape(outer.request.mutable_b(), 1, {0, kHuge});
  EXPECT_EQ(FieldOf(Convert(outer).status()), "a.shape");
}

TEST(ConvertTest, TokenThatNoScanMadeIsADefect) {
  Transpose transpose;
  transpose.payloads.clear();
  EXPECT_EQ(Convert(transpose).status().code(), absl::StatusCode::kInternal);
}

TEST(ConvertTest, TransposeSwapsTheLastTwoAxesByDefault) {
  Transpose transpose;
  transpose.request.set_variant("naive_read");
  const auto conversion = Convert(transpose);
  ASSERT_THAT(conversion, IsOk());
  const Program& program = conversion->program;
  EXPECT_EQ(program.num_inputs, 1);
  ASSERT_EQ(program.tensors.size(), 2u);
  EXPECT_EQ(program.tensors[0].shape, (Shape{2, 3}));
  EXPECT_EQ(program.tensors[0].bytes, 24u);
  EXPECT_EQ(OutputOf(*conversion).shape, (Shape{3, 2}));
  ASSERT_EQ(program.steps.size(), 1u);
  EXPECT_THAT(program.steps[0].inputs, ElementsAre(0));
  EXPECT_EQ(program.steps[0].output, 1);
  EXPECT_EQ(program.steps[0].variant, "naive_read");
  EXPECT_THAT(program.outputs, ElementsAre(1));
  EXPECT_THAT(conversion->payloads, ElementsAre(transpose.payloads[0]));
}

TEST(ConvertTest, PermutationIsTakenOver) {
  Transpose transpose;
  transpose.request.mutable_x()->add_shape(1);
  for (int axis : {2, 0, 1}) transpose.request.add_perm(axis);
  const auto conversion = Convert(transpose);
  ASSERT_THAT(conversion, IsOk());
  EXPECT_THAT(ProblemOf<TransposeProblem>(*conversion).perm, ElementsAre(2, 0, 1, 0, 0, 0, 0, 0));
  EXPECT_EQ(OutputOf(*conversion).shape, (Shape{1, 2, 3}));
}

TEST(ConvertTest, ScalarAndVectorTransposeToThemselves) {
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {6}}) {
    Transpose transpose;
    transpose.request.clear_x();
    transpose.payloads.clear();
    transpose.Fill(transpose.request.mutable_x(), v1::DATA_TYPE_I64, shape, shape.empty() ? 8 : 48);
    const auto conversion = Convert(transpose);
    ASSERT_THAT(conversion, IsOk());
    EXPECT_EQ(OutputOf(*conversion).shape, conversion->program.tensors[0].shape);
    EXPECT_EQ(OutputOf(*conversion).bytes, conversion->program.tensors[0].bytes);
  }
}

TEST(ConvertTest, EmptyArrayNeedsNoSource) {
  Transpose transpose;
  transpose.request.clear_x();
  transpose.Fill(transpose.request.mutable_x(), v1::DATA_TYPE_F64, {3, 0}, -1);
  const auto conversion = Convert(transpose);
  ASSERT_THAT(conversion, IsOk());
  ASSERT_EQ(conversion->payloads.size(), 1u);
  EXPECT_EQ(conversion->payloads[0].length, 0u);
  EXPECT_EQ(OutputOf(*conversion).shape, (Shape{0, 3}));
}

TEST(ConvertTest, StrideOfTheLastAxisIsDense) {
  Transpose transpose;
  transpose.request.mutable_x()->set_row_stride(3);
  EXPECT_THAT(Convert(transpose), IsOk());
}

TEST(ConvertTest, AutoIsTheServersChoice) {
  Transpose transpose;
  transpose.request.set_variant("auto");
  EXPECT_EQ(Convert(transpose)->program.steps[0].variant, "");
  transpose.request.set_variant(std::string(64, 'v'));
  EXPECT_EQ(Convert(transpose)->program.steps[0].variant.size(), 64u);
}

TEST(ConvertTest, GemmTakesSizesStridesAndScalarsOver) {
  Gemm gemm;
  gemm.request.mutable_a()->set_row_stride(5);
  gemm.SetPayloadBytes(0, 2 * 5 * 4);
  gemm.request.set_alpha(0.1);
  const auto conversion = Convert(gemm);
  ASSERT_THAT(conversion, IsOk());
  const auto& problem = ProblemOf<GemmProblem>(*conversion);
  EXPECT_EQ(problem.m, 2);
  EXPECT_EQ(problem.n, 4);
  EXPECT_EQ(problem.k, 3);
  EXPECT_EQ(problem.batch, 1);
  EXPECT_EQ(problem.lda, 5);
  EXPECT_EQ(problem.ldb, 4);
  EXPECT_EQ(problem.ldc, 4);
  EXPECT_TRUE(problem.has_c);
  EXPECT_EQ(conversion->program.tensors[0].bytes, 40u);
  EXPECT_EQ(OutputOf(*conversion).shape, (Shape{2, 4}));
  EXPECT_THAT(conversion->program.steps[0].inputs, ElementsAre(0, 1, 2));
  EXPECT_EQ(conversion->payloads, gemm.payloads);
  const GemmScalars& scalars = conversion->program.steps[0].scalars;
  EXPECT_EQ(scalars.alpha_f32, 0.1f);
  EXPECT_EQ(scalars.alpha_f64, 0.1);
  EXPECT_EQ(scalars.beta_f32, 2.0f);
  EXPECT_EQ(scalars.beta_f64, 2.0);
}

TEST(ConvertTest, GemmOfTransposedBatches) {
  Gemm gemm;
  gemm.request.set_trans_a(true), gemm.request.set_trans_b(true), gemm.request.set_beta(0);
  gemm.request.clear_c();
  gemm.Reshape(gemm.request.mutable_a(), 0, {5, 6, 3, 2});
  gemm.Reshape(gemm.request.mutable_b(), 1, {5, 6, 4, 3});
  const auto conversion = Convert(gemm);
  ASSERT_THAT(conversion, IsOk());
  const auto& problem = ProblemOf<GemmProblem>(*conversion);
  EXPECT_EQ(problem.m, 2);
  EXPECT_EQ(problem.n, 4);
  EXPECT_EQ(problem.k, 3);
  EXPECT_EQ(problem.batch, 30);
  EXPECT_EQ(problem.lda, 2);
  EXPECT_EQ(problem.ldb, 3);
  EXPECT_EQ(OutputOf(*conversion).shape, (Shape{5, 6, 2, 4}));
}

TEST(ConvertTest, AbsentScalarsAreOneAndZero) {
  Gemm gemm;
  gemm.request.clear_beta();
  const auto conversion = Convert(gemm);
  ASSERT_THAT(conversion, IsOk());
  EXPECT_EQ(conversion->program.steps[0].scalars.alpha_f64, 1.0);
  EXPECT_EQ(conversion->program.steps[0].scalars.beta_f64, 0.0);
}

TEST(ConvertTest, CIsDroppedWhereBetaIsZero) {
  for (double beta : {0.0, -0.0, 1e-300}) {  // the last one is 0 in f32
    Gemm gemm;
    gemm.request.set_beta(beta);
    const auto conversion = Convert(gemm);
    ASSERT_THAT(conversion, IsOk());
    EXPECT_FALSE(ProblemOf<GemmProblem>(*conversion).has_c);
    EXPECT_EQ(ProblemOf<GemmProblem>(*conversion).ldc, 0);
    EXPECT_EQ(conversion->program.num_inputs, 2);
    EXPECT_THAT(conversion->payloads, ElementsAre(gemm.payloads[0], gemm.payloads[1]));
  }
}

TEST(ConvertTest, ScalarTooLargeForF32IsInfinite) {
  Gemm gemm;
  gemm.request.set_alpha(1e300);
  gemm.request.set_beta(-kInfinity);
  const auto conversion = Convert(gemm);
  ASSERT_THAT(conversion, IsOk());
  EXPECT_EQ(conversion->program.steps[0].scalars.alpha_f32, std::numeric_limits<float>::infinity());
  EXPECT_EQ(conversion->program.steps[0].scalars.alpha_f64, 1e300);
  EXPECT_EQ(conversion->program.steps[0].scalars.beta_f32, -std::numeric_limits<float>::infinity());
}

TEST(ConvertTest, PrecisionIsOfF32Only) {
  Gemm gemm;
  gemm.request.set_precision(v1::PRECISION_TF32);
  EXPECT_EQ(ProblemOf<GemmProblem>(*Convert(gemm)).precision, Precision::kTf32);
  for (v1::Tensor* tensor : {gemm.request.mutable_a(), gemm.request.mutable_b(), gemm.request.mutable_c()}) {
    tensor->set_data_type(v1::DATA_TYPE_BF16);
  }
  for (PayloadRange& payload : gemm.payloads) payload.length /= 2;
  EXPECT_EQ(ProblemOf<GemmProblem>(*Convert(gemm)).precision, Precision::kIeee);
}

TEST(ConvertTest, ReductionGoesOverAllAxesByDefault) {
  const auto conversion = Convert(Reduce(v1::DATA_TYPE_I32));
  ASSERT_THAT(conversion, IsOk());
  EXPECT_EQ(ProblemOf<ReduceProblem>(*conversion).axes_mask, 3u);
  EXPECT_EQ(OutputOf(*conversion).shape, Shape{});
  EXPECT_EQ(OutputOf(*conversion).dtype, DType::kI64);
  EXPECT_EQ(OutputOf(*conversion).bytes, 8u);
}

TEST(ConvertTest, AxesCountFromTheEndToo) {
  Reduce reduce;
  reduce.request.add_axes(-2);
  const auto conversion = Convert(reduce);
  ASSERT_THAT(conversion, IsOk());
  EXPECT_EQ(ProblemOf<ReduceProblem>(*conversion).axes_mask, 1u);
  EXPECT_EQ(OutputOf(*conversion).shape, Shape{3});
}

TEST(ConvertTest, KeepdimsKeepsReducedAxesWithSizeOne) {
  Reduce reduce;
  reduce.request.add_axes(1);
  reduce.request.set_keepdims(true);
  EXPECT_EQ(OutputOf(*Convert(reduce)).shape, (Shape{2, 1}));
}

TEST(ConvertTest, ArgmaxGoesOverOneAxisOrAll) {
  Reduce reduce;
  reduce.request.set_op(v1::REDUCE_OP_ARGMAX);
  EXPECT_EQ(OutputOf(*Convert(reduce)).dtype, DType::kI64);
  reduce.request.add_axes(0);
  EXPECT_EQ(OutputOf(*Convert(reduce)).shape, Shape{3});
}

TEST(ConvertTest, ScalarsAreReducedToThemselves) {
  for (v1::ReduceOp op : {v1::REDUCE_OP_SUM, v1::REDUCE_OP_MAX, v1::REDUCE_OP_ARGMAX}) {
    Reduce reduce(v1::DATA_TYPE_F32, {}, 4);
    reduce.request.set_op(op);
    const auto conversion = Convert(reduce);
    ASSERT_THAT(conversion, IsOk());
    EXPECT_EQ(OutputOf(*conversion).shape, Shape{});
  }
}

TEST(ConvertTest, EveryReduceOpIsKnown) {
  for (ReduceOp op : kAllReduceOps) {
    Reduce reduce;
    // The numbers of the API leave gaps for operations to come.
    constexpr v1::ReduceOp kOps[] = {v1::REDUCE_OP_SUM, v1::REDUCE_OP_MIN, v1::REDUCE_OP_MAX,
                                     v1::REDUCE_OP_MEAN, v1::REDUCE_OP_ARGMAX};
    reduce.request.set_op(kOps[static_cast<int>(op)]);
    EXPECT_EQ(ProblemOf<ReduceProblem>(*Convert(reduce)).op, op);
  }
}

TEST(ConvertTest, SumAndMeanOfNothingAreDefined) {
  for (v1::ReduceOp op : {v1::REDUCE_OP_SUM, v1::REDUCE_OP_MEAN}) {
    Reduce reduce(v1::DATA_TYPE_F32, {2, 0}, 0);
    reduce.request.set_op(op);
    EXPECT_THAT(Convert(reduce), IsOk());
  }
}

TEST(ConvertTest, MaxWithoutResultsNeedsNoElements) {
  Reduce reduce(v1::DATA_TYPE_F32, {0, 3}, 0);
  reduce.request.set_op(v1::REDUCE_OP_MAX);
  reduce.request.add_axes(1);
  EXPECT_THAT(Convert(reduce), IsOk());
}

TEST(ConvertTest, EveryDataTypeTransposes) {
  for (DType dtype : kAllDTypes) {
    Transpose transpose;
    transpose.request.mutable_x()->set_data_type(ToProto(dtype));
    transpose.SetPayloadBytes(0, 6 * SizeOf(dtype));
    const auto conversion = Convert(transpose);
    ASSERT_THAT(conversion, IsOk());
    EXPECT_EQ(OutputOf(*conversion).dtype, dtype);
  }
}

// A header and its elements are the message that protobuf would have written.
template <typename Response>
void ExpectWholeResponse(const TensorSpec& output, const v1::Execution& execution,
                         v1::Tensor* (Response::*tensor)()) {
  const std::string elements(output.bytes, 'e');
  Response response;
  ASSERT_TRUE(response.ParseFromString(ResponseHeader(output, execution) + elements));
  Response expected;
  *expected.mutable_execution() = execution;
  v1::Tensor* const result = (expected.*tensor)();
  result->set_data_type(ToProto(output.dtype));
  for (int i = 0; i < output.shape.rank; ++i) result->add_shape(output.shape[i]);
  result->set_inline_(elements);
  EXPECT_EQ(response.SerializeAsString(), expected.SerializeAsString());
}

TEST(ResponseHeaderTest, IsTheMessageWithoutItsElements) {
  v1::Execution execution;
  execution.set_request_id("abc-1");
  execution.add_variants("naive");
  execution.mutable_stage_times()->set_device(0.5);
  const TensorSpec kOutputs[] = {{DType::kF32, {2, 3}, 24},
                                 {DType::kI64, {}, 8},
                                 {DType::kF16, {0, 7}, 0},
                                 {DType::kF64, {40000}, 320000}};
  for (const TensorSpec& output : kOutputs) {
    ExpectWholeResponse(output, execution, &v1::TransposeResponse::mutable_y);
    ExpectWholeResponse(output, execution, &v1::GemmResponse::mutable_d);
    ExpectWholeResponse(output, execution, &v1::ReduceResponse::mutable_y);
    ExpectWholeResponse(output, v1::Execution(), &v1::ReduceResponse::mutable_y);
  }
}

}  // namespace
}  // namespace warpline
