#include "client/src/result_type.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "warpline/program.h"

namespace warpline::client {
namespace {

constexpr DType kF32 = DType::kF32;

void ExpectType(const std::optional<ArrayType>& type, DType dtype, const Shape& shape, std::size_t bytes) {
  ASSERT_TRUE(type.has_value());
  EXPECT_EQ(type->dtype, dtype);
  EXPECT_EQ(type->shape, shape);
  EXPECT_EQ(type->bytes, bytes);
}

Operand Of(DType dtype, const Shape& shape) { return {.dtype = dtype, .shape = shape}; }

TEST(ResultTypeTest, TransposesAreAsLargeAsTheyWere) {
  ExpectType(ResultTypeOf(TransposeArgs{.x = Of(kF32, {2, 3, 5})}), kF32, {2, 5, 3}, 120);
  ExpectType(ResultTypeOf(TransposeArgs{.x = Of(DType::kC128, {2, 3, 5}), .perm = {2, 0, 1}}), DType::kC128,
             {5, 2, 3}, 480);
  ExpectType(ResultTypeOf(TransposeArgs{.x = Of(kF32, {})}), kF32, {}, 4);
  Operand padded = Of(kF32, {2, 3});
  padded.row_stride = 100;
  ExpectType(ResultTypeOf(TransposeArgs{.x = padded}), kF32, {3, 2}, 24);
  for (const std::vector<int>& perm : {std::vector<int>{0}, {0, 0}, {0, 2}, {-1, 0}}) {
    EXPECT_FALSE(ResultTypeOf(TransposeArgs{.x = Of(kF32, {2, 3}), .perm = perm}).has_value());
  }
}

TEST(ResultTypeTest, ProductsBroadcastTheirBatches) {
  GemmArgs args{.a = Of(kF32, {7, 1, 2, 3}), .b = Of(kF32, {4, 3, 5})};
  ExpectType(ResultTypeOf(args), kF32, {7, 4, 2, 5}, 7 * 4 * 2 * 5 * 4);
  args = {.a = Of(DType::kI8, {3, 2}), .b = Of(DType::kI8, {5, 3}), .trans_a = true, .trans_b = true};
  ExpectType(ResultTypeOf(args), DType::kI32, {2, 5}, 40);
  args = {.a = Of(DType::kBF16, {2, 3}), .b = Of(DType::kBF16, {3, 0}), .out_data_type = kF32};
  ExpectType(ResultTypeOf(args), kF32, {2, 0}, 0);
  EXPECT_FALSE(ResultTypeOf(GemmArgs{.a = Of(kF32, {2, 3}), .b = Of(kF32, {2, 3})}).has_value());
  EXPECT_FALSE(ResultTypeOf(GemmArgs{.a = Of(kF32, {3}), .b = Of(kF32, {3, 2})}).has_value());
  EXPECT_FALSE(ResultTypeOf(GemmArgs{.a = Of(kF32, {2, 2, 3}), .b = Of(kF32, {3, 3, 2})}).has_value());
}

TEST(ResultTypeTest, ReductionsHaveTheTypeOfTheirOperation) {
  ReduceArgs args{.x = Of(DType::kU16, {2, 3, 5}), .axes = {-1}};
  ExpectType(ResultTypeOf(args), DType::kU64, {2, 3}, 48);
  args.keepdims = true;
  args.op = v1::REDUCE_OP_MEAN;
  ExpectType(ResultTypeOf(args), DType::kF64, {2, 3, 1}, 48);
  args.out_data_type = kF32;
  ExpectType(ResultTypeOf(args), kF32, {2, 3, 1}, 24);
  ExpectType(ResultTypeOf(ReduceArgs{.x = Of(kF32, {2, 3}), .op = v1::REDUCE_OP_ARGMAX}), DType::kI64, {}, 8);
  args.axes = {3};
  EXPECT_FALSE(ResultTypeOf(args).has_value());
  args = {.x = Of(kF32, {2}), .op = static_cast<v1::ReduceOp>(99)};
  EXPECT_FALSE(ResultTypeOf(args).has_value());
}

TEST(ResultTypeTest, ProgramsAreFollowedStepByStep) {
  RunArgs args{
      .program = *ParseExpression("p = gemm(a, b, c=c, bias=v); q = cast(p, dtype=f64)\n"
                                  "s = scale(transpose(q), factor=2); r = reduce(s, op=max, axes=[0])\n"
                                  "add(s, r)"),
      .inputs = {
          {"a", Of(kF32, {2, 3})}, {"b", Of(kF32, {3, 5})}, {"c", Of(kF32, {2, 5})}, {"v", Of(kF32, {5})}}};
  args.program.clear_outputs();
  for (const char* name : {"p", "s", "r", "6.add", "none"}) args.program.add_outputs(name);
  std::vector<std::optional<ArrayType>> types = ResultTypesOf(args);
  ASSERT_EQ(types.size(), 5u);
  ExpectType(types[0], kF32, {2, 5}, 40);
  ExpectType(types[1], DType::kF64, {5, 2}, 80);
  ExpectType(types[2], DType::kF64, {2}, 16);
  ExpectType(types[3], DType::kF64, {5, 2}, 80);
  EXPECT_FALSE(types[4].has_value());
  args.inputs[0].second = {.resident = "id"};
  for (const std::optional<ArrayType>& type : ResultTypesOf(args)) EXPECT_FALSE(type.has_value());
}

// Otherwise the result of a new step could not go into shared memory, and nothing would say so.
TEST(ResultTypeTest, EveryStepHasOne) {
  const auto* operations = v1::Step::descriptor()->FindOneofByName("operation");
  for (int i = 0; i < operations->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = operations->field(i);
    RunArgs args{.inputs = {{"x", Of(kF32, {2, 2})}, {"y", Of(kF32, {2, 2})}}};
    v1::Step& step = *args.program.add_steps();
    step.set_name("s");
    step.add_inputs("x");
    step.add_inputs("y");
    args.program.add_outputs("s");
    step.GetReflection()->MutableMessage(&step, field);
    if (step.has_cast()) step.mutable_cast()->set_data_type(v1::DATA_TYPE_F64);
    if (step.has_reduce()) step.mutable_reduce()->set_op(v1::REDUCE_OP_SUM);
    EXPECT_TRUE(ResultTypesOf(args)[0].has_value()) << field->name();
  }
}

TEST(ResultTypeTest, TensorsOfUnknownShapeHaveResultsOfUnknownShape) {
  Operand tensor{.resident = "id"};
  EXPECT_FALSE(ResultTypeOf(TransposeArgs{.x = tensor}).has_value());
  tensor.shape = {2, 3};
  ExpectType(ResultTypeOf(TransposeArgs{.x = tensor}), kF32, {3, 2}, 24);
}

TEST(ResultTypeTest, AbsurdSizesHaveNone) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  EXPECT_FALSE(ResultTypeOf(GemmArgs{.a = Of(kF32, {kHuge, 1}), .b = Of(kF32, {1, kHuge})}).has_value());
  EXPECT_FALSE(ResultTypeOf(TransposeArgs{.x = Of(kF32, {-1})}).has_value());
}

}  // namespace
}  // namespace warpline::client
