// The rules of maps: what each node may be, and how the errors say what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kernels/field_error.h"
#include "proto/rules/convert_step.h"
#include "proto/rules/step_options.h"
#include "proto/rules/tensor_rules.h"
#include "proto/rules/views.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using testing::HasSubstr;
using testing::IsOk;

// Inputs x, y and so on of these types and shapes, and nodes that are added one by one.
struct Request {
  std::vector<Operand> operands;
  v1::MapStep map;

  Request& Input(DType dtype, const Shape& shape = {2, 3}) {
    const std::string field = absl::StrCat("inputs[", operands.size(), "]");
    operands.push_back(RowsOperand(field, static_cast<int>(operands.size()), dtype, shape, 0));
    return *this;
  }
  v1::MapNode& Node(v1::MapOp op, const std::vector<int>& reads = {}) {
    v1::MapNode& node = *map.add_nodes();
    node.set_op(op);
    for (const int value : reads) node.add_operands(value);
    return node;
  }
  v1::MapNode& Constant(DType dtype) {
    v1::MapNode& node = Node(v1::MAP_OP_CONSTANT);
    node.set_data_type(ToProto(dtype));
    return node;
  }
  absl::StatusOr<ConvertedStep> Convert() const {
    std::vector<const Operand*> inputs;
    for (const Operand& operand : operands) inputs.push_back(&operand);
    const absl::Status counts = CheckMapCounts(inputs.size(), map);
    if (!counts.ok()) return counts;
    return ConvertMap(inputs, map, ReadValue);
  }
};

TEST(ConvertMapTest, TheApiHasTheOperationsOfTheTableInItsOrder) {
  ASSERT_EQ(v1::MapOp_MAX, static_cast<int>(kMapOps.size()));
  for (std::size_t i = 0; i < kMapOps.size(); ++i) {
    const std::string name(kMapOps[i].name);
    EXPECT_EQ(v1::MapOp_Name(static_cast<v1::MapOp>(i + 1)), "MAP_OP_" + absl::AsciiStrToUpper(name));
  }
}

TEST(ConvertMapTest, BroadcastsAllInputsAndInfersTypes) {
  Request request;
  request.Input(DType::kF32, {5, 1, 4}).Input(DType::kF32, {3, 1});
  request.Constant(DType::kF32).set_real(2.5);
  request.Node(v1::MAP_OP_MULTIPLY, {0, 2});
  request.Node(v1::MAP_OP_LESS, {3, 1});
  const auto converted = request.Convert();
  ASSERT_THAT(converted, IsOk());
  EXPECT_EQ(converted->output.shape, (Shape{5, 3, 4}));
  EXPECT_EQ(converted->output.dtype, DType::kBool);
  const auto& map = std::get<MapProblem>(converted->step.problem);
  EXPECT_EQ(map.inputs[0].strides[0], 4);
  EXPECT_EQ(map.inputs[0].strides[1], 0);
  EXPECT_EQ(map.inputs[0].strides[2], 1);
  EXPECT_EQ(map.inputs[1].strides[0], 0);
  EXPECT_EQ(map.inputs[1].strides[1], 1);
  EXPECT_EQ(map.inputs[1].strides[2], 0);
  EXPECT_EQ(map.nodes[1].dtype, DType::kF32);
  ASSERT_EQ(converted->scalars.size(), 1u);
  EXPECT_EQ(converted->scalars[0].alpha.value, 2.5);
}

TEST(ConvertMapTest, IntegerConstantsAreExactAndPartOfThePlan) {
  Request request;
  request.Input(DType::kI64);
  request.Constant(DType::kI64).set_integer((std::int64_t{1} << 62) + 1);
  request.Node(v1::MAP_OP_ADD, {0, 1});
  const auto converted = request.Convert();
  ASSERT_THAT(converted, IsOk());
  EXPECT_EQ(converted->scalars[0].integer, (std::int64_t{1} << 62) + 1);
}

TEST(ConvertMapTest, AConstantWithoutADataTypeTakesThatOfItsNeighbour) {
  Request request;
  request.Input(DType::kI16).Input(DType::kBool);
  request.Node(v1::MAP_OP_CONSTANT).set_integer(7);
  request.Node(v1::MAP_OP_ADD, {2, 0});
  request.Node(v1::MAP_OP_CAST, {3}).set_data_type(v1::DATA_TYPE_F16);
  request.Node(v1::MAP_OP_CONSTANT).set_integer(3);
  request.Node(v1::MAP_OP_CONSTANT).set_real(0.5);
  request.Node(v1::MAP_OP_CLIP, {5, 6, 4});
  request.Node(v1::MAP_OP_WHERE, {1, 7, 4});
  const auto converted = request.Convert();
  ASSERT_THAT(converted, IsOk());
  const auto& map = std::get<MapProblem>(converted->step.problem);
  EXPECT_EQ(map.nodes[0].dtype, DType::kI16);
  EXPECT_EQ(map.nodes[3].dtype, DType::kF16);
  EXPECT_EQ(converted->scalars[0].integer, 7);
  EXPECT_EQ(converted->scalars[1].alpha.value, 3);
  EXPECT_EQ(converted->scalars[2].alpha.value, 0.5);
}

TEST(ConvertMapTest, OtherNodesMayBeResultsToo) {
  Request request;
  request.Input(DType::kF32, {5, 1}).Input(DType::kF32, {4});
  request.Node(v1::MAP_OP_ADD, {0, 1});
  request.Constant(DType::kI32).set_integer(7);  // read by nobody
  request.Node(v1::MAP_OP_LESS, {0, 1});
  for (const int node : {1, 0}) request.map.add_outputs()->set_node(node);
  const auto converted = request.Convert();
  ASSERT_THAT(converted, IsOk());
  EXPECT_EQ(converted->output.dtype, DType::kBool);
  ASSERT_EQ(converted->further.size(), 2u);
  EXPECT_EQ(converted->further[0].dtype, DType::kI32);
  EXPECT_EQ(converted->further[1].dtype, DType::kF32);
  EXPECT_EQ(converted->further[1].shape, (Shape{5, 4}));
  EXPECT_EQ(converted->further[1].bytes, 80u);
}

TEST(ConvertMapTest, SaysWhichResultIsNone) {
  const auto refused = [](const std::vector<int>& nodes) {
    Request request;
    request.Input(DType::kF32);
    for (int i = 0; i < 10; ++i) request.Node(v1::MAP_OP_EXP, {i});
    for (const int node : nodes) request.map.add_outputs()->set_node(node);
    return std::string(request.Convert().status().message());
  };
  EXPECT_EQ(refused({10}), "outputs[0].node: 10 is outside of [0, 9]");
  EXPECT_EQ(refused({0, -1}), "outputs[1].node: -1 is outside of [0, 9]");
  EXPECT_EQ(refused({9}), "outputs[0].node: 9 is the last node, which gives the result of the step");
  EXPECT_EQ(refused({3, 3}), "outputs[1].node: 3 is named twice");
}

TEST(ConvertMapTest, AConstantThatIsAResultNeedsADataType) {
  Request request;
  request.Input(DType::kF32);
  request.Node(v1::MAP_OP_CONSTANT).set_integer(7);
  request.Node(v1::MAP_OP_EXP, {0});
  request.map.add_outputs()->set_node(0);
  EXPECT_EQ(request.Convert().status().message(), "nodes[0].data_type: missing");
}

TEST(ConvertMapTest, AMapMayHaveAShapeOfItsOwnAndNoInputs) {
  Request wide;
  wide.Input(DType::kF32, {1, 3});
  for (const int size : {4, 2, 3}) wide.map.add_shape(size);
  wide.Node(v1::MAP_OP_EXP, {0});
  auto converted = wide.Convert();
  ASSERT_THAT(converted, IsOk());
  EXPECT_EQ(converted->output.shape, (Shape{4, 2, 3}));
  EXPECT_EQ(std::get<MapProblem>(converted->step.problem).inputs[0].strides, (Strides{0, 0, 1}));

  Request made;
  for (const int size : {4, 2}) made.map.add_shape(size);
  v1::MapNode& index = made.Node(v1::MAP_OP_INDEX);
  index.set_data_type(v1::DATA_TYPE_I64);
  index.set_integer(-1);
  converted = made.Convert();
  ASSERT_THAT(converted, IsOk());
  EXPECT_EQ(converted->output.shape, (Shape{4, 2}));
  EXPECT_EQ(std::get<MapProblem>(converted->step.problem).dtype, DType::kI64);
  EXPECT_EQ(std::get<MapProblem>(converted->step.problem).nodes[0].operands[0], 1);
  EXPECT_TRUE(converted->step.inputs.empty());
}

TEST(ConvertMapTest, RefusesWhatMakesNoSenseAndSaysWhere) {
  struct Case {
    std::string want;
    std::function<void(Request&)> fill;
  };
  const auto add = [](Request& r, std::vector<int> reads) -> v1::MapNode& {
    return r.Node(v1::MAP_OP_ADD, reads);
  };
  const std::vector<Case> cases = {
      {"nodes[0].operands[0]: 0; 0 inputs and the earlier nodes are none",
       [&](Request& r) {
         add(r, {0, 0});
       }},
      {"nodes[2].operands[0]: a constant without a data type, beside no operand that has one",
       [&](Request& r) {
         r.Input(DType::kF32);
         r.Node(v1::MAP_OP_CONSTANT);
         r.Node(v1::MAP_OP_CONSTANT);
         add(r, {1, 2});
       }},
      {"nodes[1].operands[1].real: a fraction beside i32: cast what is i32 to a floating-point type, or "
       "write",
       [&](Request& r) {
         r.Input(DType::kI32);
         r.Node(v1::MAP_OP_CONSTANT).set_real(0.5);
         add(r, {0, 1});
       }},
      {"nodes[1].operands[1].integer: given beside `real` or `imag`",
       [&](Request& r) {
         r.Input(DType::kF32);
         v1::MapNode& constant = r.Node(v1::MAP_OP_CONSTANT);
         constant.set_integer(3);
         constant.set_real(0.5);
         add(r, {0, 1});
       }},
      {"nodes[0].data_type: missing", [&](Request& r) { r.Node(v1::MAP_OP_CONSTANT); }},
      {"nodes[0].data_type: no index is f32; supported: i32, i64",
       [&](Request& r) {
         r.map.add_shape(3);
         r.Node(v1::MAP_OP_INDEX).set_data_type(v1::DATA_TYPE_F32);
       }},
      {"nodes[0].integer: axis 1 is outside of [-1, 1)",
       [&](Request& r) {
         r.map.add_shape(3);
         v1::MapNode& index = r.Node(v1::MAP_OP_INDEX);
         index.set_data_type(v1::DATA_TYPE_I64);
         index.set_integer(1);
       }},
      {"nodes[0].data_type: i32, but axis 0 has 2147483649 elements; i64 has all of their positions",
       [&](Request& r) {
         r.map.add_shape((std::int64_t{1} << 31) + 1);
         r.Node(v1::MAP_OP_INDEX).set_data_type(v1::DATA_TYPE_I32);
       }},
      {"shape: [3,2], to which inputs[0], [2,3], cannot be broadcast",
       [&](Request& r) {
         r.Input(DType::kF32);
         r.map.add_shape(3);
         r.map.add_shape(2);
         r.Node(v1::MAP_OP_EXP, {0});
       }},
      {"inputs: has 33 names; a map reads at most 32",
       [&](Request& r) {
         for (int i = 0; i < 33; ++i) r.Input(DType::kF32);
       }},
      {"nodes: has 0; a map has 1 to 256", [&](Request& r) { r.Input(DType::kF32); }},
      {"nodes[0].op: missing", [&](Request& r) { r.Input(DType::kF32).Node(v1::MAP_OP_UNSPECIFIED, {0}); }},
      {"nodes[0].operands: has 1; add reads 2", [&](Request& r) { add(r.Input(DType::kF32), {0}); }},
      {"nodes[0].operands[1]: 1; 1 inputs and the earlier nodes are 0 to 0",
       [&](Request& r) {
         add(r.Input(DType::kF32), {0, 1});
       }},
      {"nodes[0].operands[0]: -1; 1 inputs",
       [&](Request& r) {
         add(r.Input(DType::kF32), {-1, 0});
       }},
      {"nodes[0].operands[1]: f64, but operands[0] is f32",
       [&](Request& r) {
         add(r.Input(DType::kF32).Input(DType::kF64), {0, 1});
       }},
      {"nodes[0].operands[0]: the condition is f32; it must be bool",
       [&](Request& r) {
         r.Input(DType::kF32).Node(v1::MAP_OP_WHERE, {0, 0, 0});
       }},
      {"nodes[0].operands[0]: exp does not take i32; supported: f16, bf16, f32, f64",
       [&](Request& r) { r.Input(DType::kI32).Node(v1::MAP_OP_EXP, {0}); }},
      {"nodes[0].operands[0]: less does not take c64",
       [&](Request& r) {
         r.Input(DType::kC64).Node(v1::MAP_OP_LESS, {0, 0});
       }},
      {"nodes[0].operands[0]: add does not take f8e4m3",
       [&](Request& r) {
         add(r.Input(DType::kF8E4M3), {0, 0});
       }},
      {"nodes[0].data_type: f64, but add of f32 gives f32",
       [&](Request& r) {
         add(r.Input(DType::kF32), {0, 0}).set_data_type(v1::DATA_TYPE_F64);
       }},
      {"nodes[0].data_type: missing", [&](Request& r) { r.Input(DType::kF32).Node(v1::MAP_OP_CAST, {0}); }},
      {"nodes[0].data_type: c64 is not cast to f32; real, imag and abs give real numbers",
       [&](Request& r) { r.Input(DType::kC64).Node(v1::MAP_OP_CAST, {0}).set_data_type(v1::DATA_TYPE_F32); }},
      {"nodes[0].data_type: nothing is cast to f8e5m2",
       [&](Request& r) {
         r.Input(DType::kF32).Node(v1::MAP_OP_CAST, {0}).set_data_type(v1::DATA_TYPE_F8E5M2);
       }},
      {"nodes[0].integer: 256 is outside of u8",
       [&](Request& r) { r.Input(DType::kU8).Constant(DType::kU8).set_integer(256); }},
      {"nodes[0].integer: -129 is outside of i8",
       [&](Request& r) { r.Input(DType::kI8).Constant(DType::kI8).set_integer(-129); }},
      {"nodes[0].integer: 2 is outside of bool",
       [&](Request& r) { r.Input(DType::kBool).Constant(DType::kBool).set_integer(2); }},
      {"nodes[0].real: i32 takes `integer`",
       [&](Request& r) { r.Input(DType::kI32).Constant(DType::kI32).set_real(1); }},
      {"nodes[0].integer: f32 takes `real`",
       [&](Request& r) { r.Input(DType::kF32).Constant(DType::kF32).set_integer(1); }},
      {"nodes[0].imag: f32 has no imaginary part",
       [&](Request& r) { r.Input(DType::kF32).Constant(DType::kF32).set_imag(1); }},
      {"nodes[0].real: given, but add is not a constant",
       [&](Request& r) {
         add(r.Input(DType::kF32), {0, 0}).set_real(1);
       }},
      {"nodes[1].operands[1]: the power of an integer is -1; the least is 0",
       [&](Request& r) {
         r.Input(DType::kI32).Constant(DType::kI32).set_integer(-1);
         r.Node(v1::MAP_OP_POW, {0, 1});
       }},
      {"nodes[0]: no later node reads it",
       [&](Request& r) {
         add(r.Input(DType::kF32), {0, 0});
         add(r, {0, 0});
       }},
      {"inputs[1]: no node reads it",
       [&](Request& r) {
         add(r.Input(DType::kF32).Input(DType::kF32), {0, 0});
       }},
      {"inputs[1].shape: the axis 1 has size 4, which cannot be broadcast with 3",
       [&](Request& r) {
         add(r.Input(DType::kF32).Input(DType::kF32, {2, 4}), {0, 1});
       }},
  };
  for (const Case& each : cases) {
    Request request;
    each.fill(request);
    const absl::Status status = request.Convert().status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << each.want << "\n" << status;
    EXPECT_THAT(std::string(status.message()), testing::StartsWith(each.want));
    EXPECT_TRUE(FieldOf(status).has_value()) << each.want;
  }
}

TEST(ConvertMapTest, WhatIsNotImplementedIsCalledSo) {
  Request newer;
  newer.Input(DType::kF32).Node(static_cast<v1::MapOp>(v1::MapOp_MAX + 1), {0});
  EXPECT_TRUE(absl::IsUnimplemented(newer.Convert().status())) << newer.Convert().status();
  EXPECT_THAT(std::string(newer.Convert().status().message()),
              HasSubstr(absl::StrCat("nodes[0].op: number ", v1::MapOp_MAX + 1, " is none of 1 to ")));
  Request complex;
  complex.Input(DType::kC128).Node(v1::MAP_OP_EXP2, {0});
  EXPECT_TRUE(absl::IsUnimplemented(complex.Convert().status())) << complex.Convert().status();
  EXPECT_EQ(complex.Convert().status().message(),
            "nodes[0].operands[0]: exp2 of complex numbers is not implemented");
}

TEST(ConvertMapTest, TakesAsManyNodesAndInputsAsThereMayBe) {
  Request request;
  for (int i = 0; i < kMaxMapInputs; ++i) request.Input(DType::kF32);
  request.Node(v1::MAP_OP_ADD, {0, 1});
  for (int i = 1; i < kMaxMapNodes; ++i) {
    request.Node(v1::MAP_OP_ADD, {kMaxMapInputs + i - 1, i % kMaxMapInputs});
  }
  EXPECT_THAT(request.Convert(), IsOk());
  request.Node(v1::MAP_OP_EXP, {kMaxMapInputs});
  EXPECT_EQ(request.Convert().status().message(), "nodes: has 257; a map has 1 to 256");
}

}  // namespace
}  // namespace warpline
