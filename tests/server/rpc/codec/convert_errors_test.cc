// Tests which requests are refused, with which code, for which field and with which reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "server/base/errors.h"
#include "server/rpc/codec/convert.h"
#include "tests/server/rpc/codec/scanned_requests.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::HasSubstr;
using ::warpline::testing::IsOk;

constexpr std::int64_t kHuge = std::int64_t{1} << 40;

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
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.says));
  }
}

TEST(ConvertErrorsTest, BadTensorIsRefused) {
  const auto x = [](Transpose& r) { return r.request.mutable_x(); };
  ExpectRefused<Transpose>({
      {"no tensor", [](auto& r) { r.request.clear_x(); }, "x", "missing"},
      {"no data type", [&](auto& r) { x(r)->clear_data_type(); }, "x.data_type", "missing"},
      {"unknown data type", [&](auto& r) { x(r)->set_data_type(static_cast<v1::DataType>(18)); },
       "x.data_type", "number 18 is none of bool, u8", absl::StatusCode::kUnimplemented},
      {"negative data type", [&](auto& r) { x(r)->set_data_type(static_cast<v1::DataType>(-1)); },
       "x.data_type", "number -1 is none of bool, u8"},
      {"rank 9",
       [&](auto& r) {
         for (int i = 0; i < 7; ++i) x(r)->add_shape(1);
       },
       "x.shape", "rank 9 is above the limit of 8"},
      {"negative size", [&](auto& r) { x(r)->set_shape(1, -3); }, "x.shape", "axis 1 has size -3"},
      {"too many elements", [&](auto& r) { x(r)->set_shape(0, kHuge), x(r)->set_shape(1, kHuge); }, "x.shape",
       "2^56 bytes"},
      {"too many bytes", [&](auto& r) { x(r)->set_shape(0, kHuge), x(r)->set_shape(1, 1 << 21); }, "x.shape",
       "2^56 bytes"},
      {"too many elements but for a zero",
       [&](auto& r) { x(r)->set_shape(0, kHuge), x(r)->set_shape(1, kHuge), x(r)->add_shape(0); }, "x.shape",
       "2^56 bytes"},
      {"too few bytes", [](auto& r) { r.SetPayloadBytes(0, 23); }, "x.inline",
       "got 23 bytes; expected 24 bytes"},
      {"too many bytes sent", [](auto& r) { r.SetPayloadBytes(0, 25); }, "x.inline",
       "got 25 bytes; expected 24"},
      {"bytes for an empty array", [&](auto& r) { x(r)->set_shape(0, 0); }, "x.inline", "expected 0 bytes"},
      {"no source", [&](auto& r) { x(r)->clear_source(); }, "x.inline", "missing; expected 24 bytes"},
      {"stride below the last axis", [&](auto& r) { x(r)->set_row_stride(2); }, "x.row_stride", "2 is less"},
      {"negative stride", [&](auto& r) { x(r)->set_row_stride(-3); }, "x.row_stride", "-3 is less"},
      {"bytes without any padding", [&](auto& r) { x(r)->set_row_stride(4); }, "x.inline",
       "got 24 bytes; expected 28 or, with the padding of the last row, 32 bytes"},
      {"a part of the padding of the last row",
       [&](auto& r) { x(r)->set_row_stride(5), r.SetPayloadBytes(0, 36); }, "x.inline",
       "got 36 bytes; expected 32 or, with the padding of the last row, 40 bytes"},
      {"variant of 65 bytes", [](auto& r) { r.request.set_variant(std::string(65, 'v')); }, "variant",
       "65 bytes is above the limit of 64"},
  });
}

TEST(ConvertErrorsTest, BadPermutationIsRefused) {
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

TEST(ConvertErrorsTest, BadGemmIsRefused) {
  ExpectRefused<Gemm>({
      {"no a", [](auto& r) { r.request.clear_a(); }, "a", "missing"},
      {"no b", [](auto& r) { r.request.clear_b(); }, "b", "missing"},
      {"no c for beta", [](auto& r) { r.request.clear_c(); }, "c", "beta is 2"},
      {"no c for beta NaN", [](auto& r) { r.request.clear_c(), r.request.set_beta(NAN); }, "c",
       "beta is nan"},
      {"bool",
       [](auto& r) {
         r.request.clear_a();
         r.Fill(r.request.mutable_a(), v1::DATA_TYPE_BOOL, {2, 3}, 6);
       },
       "a.data_type",
       "gemm does not take bool; supported: u8, u16, u32, u64, i8, i16, i32, i64, f16, bf16, f32, f64, c64, "
       "c128"},
      {"rank 1", [](auto& r) { r.Reshape(r.request.mutable_a(), 0, {3}); }, "a.shape", "rank 1; at least 2"},
      {"rank of b", [](auto& r) { r.Reshape(r.request.mutable_b(), 1, {3}); }, "b.shape",
       "rank 1; at least 2 is needed"},
      {"rank of c",
       [](auto& r) {
         r.Reshape(r.request.mutable_c(), 2, {1, 2, 4});
       },
       "c.shape", "[1,2,4], but the product is [2,4]"},
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
       "c.data_type", "f64, but the result has f32"},
      {"batch axes",
       [](auto& r) {
         r.Reshape(r.request.mutable_a(), 0, {7, 2, 3}), r.Reshape(r.request.mutable_b(), 1, {6, 3, 4});
       },
       "b.shape", "batch axis 0 has size 6, which cannot be broadcast with 7"},
      {"stride below the last axis", [](auto& r) { r.request.mutable_b()->set_row_stride(3); },
       "b.row_stride", "3 is less than the last axis, of size 4"},
      {"stride that overflows", [](auto& r) { r.request.mutable_a()->set_row_stride(kHuge * 1024 * 2048); },
       "a.shape", "2^56 bytes"},
      {"less than the elements of the last row",
       [](auto& r) { r.request.mutable_a()->set_row_stride(5), r.SetPayloadBytes(0, 28); }, "a.inline",
       "got 28 bytes; expected 32 or, with the padding of the last row, 40"},
      {"precision", [](auto& r) { r.request.set_precision(static_cast<v1::Precision>(3)); }, "precision",
       "number 3", absl::StatusCode::kUnimplemented},
      {"unknown activation", [](auto& r) { r.request.set_activation(static_cast<v1::Activation>(4)); },
       "activation", "number 4", absl::StatusCode::kUnimplemented},
      {"result of another kind", [](auto& r) { r.request.set_out_data_type(v1::DATA_TYPE_F64); },
       "out_data_type", "f64 is not what a product of f32 can give: f32"},
      {"shape of the bias", [](auto& r) { r.Fill(r.request.mutable_bias(), v1::DATA_TYPE_F32, {3}, 12); },
       "bias.shape", "[3], but the product has 4 columns"},
      {"data type of the bias", [](auto& r) { r.Fill(r.request.mutable_bias(), v1::DATA_TYPE_F16, {4}, 8); },
       "bias.data_type", "f16, but the result has f32"},
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

TEST(ConvertErrorsTest, BadIntegerProductIsRefused) {
  struct IntegerGemm : Scanned {
    IntegerGemm() {
      Fill(request.mutable_a(), v1::DATA_TYPE_I8, {2, 3}, 6);
      Fill(request.mutable_b(), v1::DATA_TYPE_I8, {3, 4}, 12);
    }
    v1::GemmRequest request;
  };
  ExpectRefused<IntegerGemm>({
      {"fraction", [](auto& r) { r.request.set_alpha(0.5); }, "alpha",
       "0.5; for operands of integers it must be an integer"},
      {"too large", [](auto& r) { r.request.set_alpha(1e10); }, "alpha",
       "for operands of integers it must be an integer in"},
      {"NaN", [](auto& r) { r.request.set_alpha(NAN); }, "alpha", "nan"},
      {"activation", [](auto& r) { r.request.set_activation(v1::ACTIVATION_RELU); }, "activation",
       "products of i8 have none"},
      {"bias", [](auto& r) { r.Fill(r.request.mutable_bias(), v1::DATA_TYPE_I32, {4}, 16); }, "bias",
       "i8 products take no bias"},
      {"result", [](auto& r) { r.request.set_out_data_type(v1::DATA_TYPE_F32); }, "out_data_type",
       "f32 is not what a product of i8 can give: i32 or i8"},
      {"c of the operands' type",
       [](auto& r) {
         r.request.set_beta(1), r.Fill(r.request.mutable_c(), v1::DATA_TYPE_I8, {2, 4}, 8);
       },
       "c.data_type", "i8, but the result has i32"},
  });
}

TEST(ConvertErrorsTest, BadReductionIsRefused) {
  const auto empty = [](v1::ReduceOp op) {
    return [op](Reduce& r) {
      r.request.mutable_x()->set_shape(1, 0), r.SetPayloadBytes(0, 0);
      r.request.set_op(op), r.request.add_axes(1);
    };
  };
  ExpectRefused<Reduce>({
      {"no tensor", [](auto& r) { r.request.clear_x(); }, "x", "missing"},
      {"no op", [](auto& r) { r.request.clear_op(); }, "op", "number 0"},
      {"unknown op", [](auto& r) { r.request.set_op(static_cast<v1::ReduceOp>(18)); }, "op",
       "number 18 is none of sum (1), prod (2)", absl::StatusCode::kUnimplemented},
      {"f8",
       [](auto& r) { r.request.mutable_x()->set_data_type(v1::DATA_TYPE_F8E4M3), r.SetPayloadBytes(0, 6); },
       "x.data_type", "reduce does not take f8e4m3; supported: bool, u8"},
      {"index of another type",
       [](auto& r) {
         r.request.set_op(v1::REDUCE_OP_ARGMIN), r.request.set_out_data_type(v1::DATA_TYPE_I32);
       },
       "out_data_type", "i32: argmin gives i64"},
      {"integer result of floats", [](auto& r) { r.request.set_out_data_type(v1::DATA_TYPE_I64); },
       "out_data_type", "i64: sum of f32 is a floating-point number"},
      {"complex result", [](auto& r) { r.request.set_out_data_type(v1::DATA_TYPE_C64); }, "out_data_type",
       "c64: supported: bool"},
      {"unknown result", [](auto& r) { r.request.set_out_data_type(static_cast<v1::DataType>(99)); },
       "out_data_type", "number 99 is none of bool", absl::StatusCode::kUnimplemented},
      {"ddof of a sum", [](auto& r) { r.request.set_ddof(1); }, "ddof", "only var and std"},
      {"negative ddof", [](auto& r) { r.request.set_op(v1::REDUCE_OP_VAR), r.request.set_ddof(-1); }, "ddof",
       "-1; the least is 0"},
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
      {"argmin of nothing", empty(v1::REDUCE_OP_ARGMIN), "x.shape", "argmin over no elements"},
      {"argmax of nothing", empty(v1::REDUCE_OP_ARGMAX), "x.shape", "argmax over no elements"},
      {"norminf of nothing", empty(v1::REDUCE_OP_NORMINF), "x.shape", "norminf over no elements"},
      {"variant of 65 bytes", [](auto& r) { r.request.set_variant(std::string(65, 'v')); }, "variant", "64"},
  });
}

TEST(ConvertErrorsTest, InputsAboveTheLimitTogetherAreRefused) {
  EXPECT_THAT(Convert(Gemm(), 24 + 48 + 32), IsOk());
  const absl::Status status = Convert(Gemm(), 24 + 48 + 31).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(status), "c.inline");
  EXPECT_THAT(std::string(status.message()), HasSubstr("take 104 bytes; the limit is 103"));
}

TEST(ConvertErrorsTest, ResultAboveTheLimitIsRefused) {
  Gemm outer;  // a column times a row
  outer.request.clear_c(), outer.request.clear_beta();
  outer.Reshape(outer.request.mutable_a(), 0, {20, 1});
  outer.Reshape(outer.request.mutable_b(), 1, {1, 20});
  EXPECT_THAT(Convert(outer, 1600), IsOk());
  const absl::Status status = Convert(outer, 1599).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(status), "a.shape");
  EXPECT_THAT(std::string(status.message()), HasSubstr("takes 1600 bytes; the limit is 1599"));
}

TEST(ConvertErrorsTest, ResultWhoseBytesOverflowIsRefused) {
  Gemm outer;  // no elements in, 2^80 elements out
  outer.request.clear_c(), outer.request.clear_beta();
  outer.Reshape(outer.request.mutable_a(), 0, {kHuge, 0});
  outer.Reshape(outer.request.mutable_b(), 1, {0, kHuge});
  EXPECT_EQ(FieldOf(Convert(outer).status()), "a.shape");
}

TEST(ConvertErrorsTest, TokenThatNoScanMadeIsADefect) {
  Transpose transpose;
  transpose.payloads.clear();
  EXPECT_EQ(Convert(transpose).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace warpline
