#include "client/src/result_type.h"

#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/every_step.h"
#include "warpline/error.h"
#include "warpline/program.h"

namespace warpline::client {
namespace {

constexpr DType kF32 = DType::kF32;

using ::testing::HasSubstr;

RunArgs OneStep(const RunArgs& args) { return args; }  // a program already

void ExpectType(const std::optional<ArrayType>& type, DType dtype, const Shape& shape, std::size_t bytes) {
  ASSERT_TRUE(type.has_value());
  EXPECT_EQ(type->dtype, dtype);
  EXPECT_EQ(type->shape, shape);
  EXPECT_EQ(type->bytes, bytes);
}

template <typename Args>
void ExpectResult(const Args& args, DType dtype, const Shape& shape, std::size_t bytes) {
  const absl::StatusOr<ResultTypes> types = ResultTypesOf(OneStep(args));
  ASSERT_TRUE(types.ok()) << types.status();
  ASSERT_EQ(types->size(), 1u);
  ExpectType((*types)[0], dtype, shape, bytes);
}

template <typename Args>
void ExpectUnknown(const Args& args) {
  const absl::StatusOr<ResultTypes> types = ResultTypesOf(OneStep(args));
  ASSERT_TRUE(types.ok()) << types.status();
  for (const std::optional<ArrayType>& type : *types) EXPECT_FALSE(type.has_value());
}

// `text` is a part of the error.
template <typename Args>
void ExpectRefused(const Args& args, const std::string& field, const std::string& text) {
  const absl::Status status = ResultTypesOf(OneStep(args)).status();
  ASSERT_TRUE(absl::IsInvalidArgument(status)) << status;
  const ErrorDetails details = DetailsOf(status);
  ASSERT_EQ(details.violations.size(), 1u);
  EXPECT_EQ(details.violations[0].field, field);
  EXPECT_EQ(details.violations[0].description, status.message());
  EXPECT_FALSE(details.answered);
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

Operand Of(DType dtype, const Shape& shape) { return {.dtype = dtype, .shape = shape}; }

TEST(ResultTypeTest, TransposesAreAsLargeAsTheyWere) {
  ExpectResult(TransposeArgs{.x = Of(kF32, {2, 3, 5})}, kF32, {2, 5, 3}, 120);
  ExpectResult(TransposeArgs{.x = Of(DType::kC128, {2, 3, 5}), .perm = {2, 0, 1}}, DType::kC128, {5, 2, 3},
               480);
  ExpectResult(TransposeArgs{.x = Of(kF32, {})}, kF32, {}, 4);
  Operand padded = Of(kF32, {2, 3});
  padded.row_stride = 100;
  ExpectResult(TransposeArgs{.x = padded}, kF32, {3, 2}, 24);
  for (const std::vector<int>& perm : {std::vector<int>{0}, {0, 0}, {0, 2}, {-1, 0}}) {
    ExpectRefused(TransposeArgs{.x = Of(kF32, {2, 3}), .perm = perm}, "perm", "");
  }
}

TEST(ResultTypeTest, ProductsBroadcastTheirBatches) {
  GemmArgs args{.a = Of(kF32, {7, 1, 2, 3}), .b = Of(kF32, {4, 3, 5})};
  ExpectResult(args, kF32, {7, 4, 2, 5}, 7 * 4 * 2 * 5 * 4);
  args = {.a = Of(DType::kI8, {3, 2}), .b = Of(DType::kI8, {5, 3}), .trans_a = true, .trans_b = true};
  ExpectResult(args, DType::kI32, {2, 5}, 40);
  args = {.a = Of(DType::kBF16, {2, 3}), .b = Of(DType::kBF16, {3, 0}), .out_data_type = kF32};
  ExpectResult(args, kF32, {2, 0}, 0);
  ExpectRefused(GemmArgs{.a = Of(kF32, {2, 3}), .b = Of(kF32, {2, 3})}, "b.shape", "inner size 2");
  ExpectRefused(GemmArgs{.a = Of(kF32, {3}), .b = Of(kF32, {3, 2})}, "a.shape", "rank 1");
  ExpectRefused(GemmArgs{.a = Of(kF32, {2, 2, 3}), .b = Of(kF32, {3, 3, 2})}, "b.shape", "broadcast");
}

TEST(ResultTypeTest, ReductionsHaveTheTypeOfTheirOperation) {
  ReduceArgs args{.x = Of(DType::kU16, {2, 3, 5}), .axes = {-1}};
  ExpectResult(args, DType::kU64, {2, 3}, 48);
  args.keepdims = true;
  args.op = v1::REDUCE_OP_MEAN;
  ExpectResult(args, DType::kF64, {2, 3, 1}, 48);
  args.out_data_type = kF32;
  ExpectResult(args, kF32, {2, 3, 1}, 24);
  ExpectResult(ReduceArgs{.x = Of(kF32, {2, 3}), .op = v1::REDUCE_OP_ARGMAX}, DType::kI64, {}, 8);
  args.axes = {3};
  ExpectRefused(args, "axes", "axis 3 is outside of [-3, 3)");
  ExpectRefused(ReduceArgs{.x = Of(kF32, {2}), .op = static_cast<v1::ReduceOp>(-1)}, "op", "number -1");
  ExpectResult(ReduceArgs{.x = Of(DType::kC64, {2, 3}), .axes = {0}}, DType::kC64, {3}, 24);
  ExpectRefused(ReduceArgs{.x = Of(DType::kF8E5M2, {2})}, "x.data_type", "reduce does not take f8e5m2");
  ExpectRefused(ReduceArgs{.x = Of(DType::kC64, {2}), .op = v1::REDUCE_OP_MAX}, "op", "have no order");
}

TEST(ResultTypeTest, ProgramsAreFollowedStepByStep) {
  RunArgs args{
      .program = *ParseExpression("p = gemm(a, b, c=c, bias=v); q = cast(p, dtype=f64)\n"
                                  "s = scale(transpose(q), factor=2); r = reduce(s, op=max, axes=[0])\n"
                                  "add(s, r)"),
      .inputs = {
          {"a", Of(kF32, {2, 3})}, {"b", Of(kF32, {3, 5})}, {"c", Of(kF32, {2, 5})}, {"v", Of(kF32, {5})}}};
  args.program.clear_outputs();
  for (const char* name : {"p", "s", "r", "6.add"}) args.program.add_outputs(name);
  ASSERT_TRUE(ResultTypesOf(args).ok()) << ResultTypesOf(args).status();
  const ResultTypes types = *ResultTypesOf(args);
  ASSERT_EQ(types.size(), 4u);
  ExpectType(types[0], kF32, {2, 5}, 40);
  ExpectType(types[1], DType::kF64, {5, 2}, 80);
  ExpectType(types[2], DType::kF64, {2}, 16);
  ExpectType(types[3], DType::kF64, {5, 2}, 80);
  args.inputs[0].second = {.resident = "id"};
  ExpectUnknown(args);
  args.program.add_outputs("none");
  ExpectRefused(args, "program.outputs[4]", "\"none\" names no step");
}

// Otherwise the result of a new step could not go into shared memory, and nothing would say so.
TEST(ResultTypeTest, EveryStepHasOne) {
  for (const auto& [name, args] : ::warpline::testing::EveryStep()) {
    const absl::StatusOr<ResultTypes> types = ResultTypesOf(args);
    ASSERT_TRUE(types.ok()) << types.status();
    // The size of what a mask takes depends on its elements.
    EXPECT_EQ((*types)[0].has_value(), name != "compress") << name;
  }
}

TEST(ResultTypeTest, TensorsOfUnknownShapeHaveResultsOfUnknownShape) {
  Operand tensor{.resident = "id"};
  ExpectUnknown(TransposeArgs{.x = tensor});
  ExpectUnknown(ReduceArgs{.x = tensor});
  ExpectUnknown(GemmArgs{.a = tensor, .b = Of(kF32, {2, 2})});
  ExpectUnknown(GemmArgs{.a = Of(kF32, {2, 2}), .b = tensor});
  GemmArgs args{.a = Of(kF32, {2, 2}), .b = Of(kF32, {2, 3}), .c = tensor, .beta = 1};
  ExpectUnknown(args);
  args.beta = 0;
  ExpectResult(args, kF32, {2, 3}, 24);
  args.bias = tensor;
  ExpectUnknown(args);
  tensor.shape = {2, 3};
  ExpectResult(TransposeArgs{.x = tensor}, kF32, {3, 2}, 24);
}

TEST(ResultTypeTest, UnknownOperandsLeaveTheRestToCheck) {
  const Operand tensor{.resident = "id"};
  ExpectRefused(TransposeArgs{.x = tensor, .variant = std::string(65, 'v')}, "variant", "65 bytes");
  ExpectRefused(GemmArgs{.a = tensor, .b = Of(kF32, {-1})}, "b.shape", "size -1");
  ExpectRefused(GemmArgs{.a = tensor, .b = tensor, .beta = 2}, "c", "beta is 2");
  // f64 would read c, f32 would not.
  ExpectUnknown(GemmArgs{.a = tensor, .b = tensor, .beta = 1e-300});
  RunArgs args{.program = *ParseExpression("p = gemm(t, x); q = transpose(x, perm=[0, 0]); add(p, q)"),
               .inputs = {{"t", tensor}, {"x", Of(kF32, {2, 2})}}};
  ExpectRefused(args, "program.steps[1].perm", "step \"q\": axis 0 is named twice");
  args.program = *ParseExpression("p = gemm(t, x); add(p, y)");
  ExpectRefused(args, "program.steps[1].inputs[1]", "\"y\" names no input and no step");
  args.program = *ParseExpression("p = gemm(t, t); add(p, p)");
  ExpectRefused(args, "inputs[1].name", "\"x\" is read by no step");
  args.inputs.pop_back();
  ExpectUnknown(args);
  for (int i = 0; i < 2; ++i) args.program.mutable_steps(0)->add_inputs("t");
  ExpectRefused(args, "program.steps[0].inputs", "has 4 names; the product reads 2, or 3 with c");
}

// A newer server may know what this client does not.
TEST(ResultTypeTest, StepsOfANewerApiHaveUnknownResults) {
  RunArgs args{.program = *ParseExpression("p = transpose(x); add(p, p)"),
               .inputs = {{"x", Of(kF32, {2, 3})}}};
  v1::Step& step = *args.program.mutable_steps(0);
  step.clear_operation();
  ExpectRefused(args, "program.steps[0].operation", "missing");
  step.GetReflection()->MutableUnknownFields(&step)->AddLengthDelimited(1000, "");
  ExpectUnknown(args);
  step.DiscardUnknownFields();
  v1::TransposeStep& transpose = *step.mutable_transpose();
  transpose.GetReflection()->MutableUnknownFields(&transpose)->AddVarint(1000, 1);
  ExpectUnknown(args);
}

TEST(ResultTypeTest, AbsurdSizesAreRefused) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  ExpectRefused(GemmArgs{.a = Of(kF32, {kHuge, 1}), .b = Of(kF32, {1, kHuge})}, "a.shape", "more than 2^56");
  ExpectRefused(TransposeArgs{.x = Of(kF32, {-1})}, "x.shape", "axis 0 has size -1; the least is 0");
  Operand narrow = Of(kF32, {2, 3});
  narrow.row_stride = 2;
  ExpectRefused(TransposeArgs{.x = narrow}, "x.row_stride", "2 is less than the last axis, of size 3");
}

}  // namespace
}  // namespace warpline::client
