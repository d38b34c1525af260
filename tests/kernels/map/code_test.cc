#include "kernels/map/code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/map/walk.h"
#include "kernels/problem_text.h"

namespace warpline {
namespace {

MapProblem Map(std::string_view text) {
  const auto problem = ParseProblem(text);
  EXPECT_TRUE(problem.ok()) << problem.status();
  return std::get<MapProblem>(*problem);
}

TEST(MapCodeTest, ResultsThatOnlyTheNextInstructionReadsNeedNoSlot) {
  // In x * x + y, only y needs one: it is loaded before the product.
  const MapCode code = Lower(Map("map 8x9 f32 f32 = multiply(0,0) add(2,1)"));
  ASSERT_EQ(code.instructions.size(), 4u);
  EXPECT_EQ(code.instructions[0].code, kLoadCode);
  EXPECT_EQ(code.instructions[0].from[0], 1);
  EXPECT_EQ(code.instructions[0].to, 0);
  EXPECT_EQ(code.instructions[1].code, kLoadCode);
  EXPECT_EQ(code.instructions[1].to, kLastResult);
  EXPECT_EQ(code.instructions[2].code, CodeOf(MapOp::kMultiply, NumberType::kF32));
  EXPECT_EQ(code.instructions[2].from[0], kLastResult);
  EXPECT_EQ(code.instructions[2].to, kLastResult);
  EXPECT_EQ(code.instructions[3].code, CodeOf(MapOp::kAdd, NumberType::kF32));
  EXPECT_EQ(code.instructions[3].from[1], 0);
  EXPECT_EQ(code.slots, 1);
  EXPECT_EQ(code.slot_bytes, 4);
  EXPECT_EQ(code.weight, MapWeight::kLight);
  EXPECT_EQ(code.results[0], kLastResult);
}

TEST(MapCodeTest, ASlotIsUsedAgainAfterItsLastReader) {
  // x and its square root are read twice; the slot of x serves the sum.
  const MapCode code = Lower(Map("map 64 f32 = sqrt(0) add(0,1) multiply(1,2) less(2,3)"));
  ASSERT_EQ(code.instructions.size(), 5u);
  EXPECT_EQ(code.instructions[0].to, 0);
  EXPECT_EQ(code.instructions[1].to, 1);
  EXPECT_EQ(code.instructions[2].to, 0);
  EXPECT_EQ(code.slots, 2);
}

TEST(MapCodeTest, ResultsKeepTheirSlotsToTheEnd) {
  // The square root is read by its neighbour alone, and the cast changes nothing: its result is the input.
  MapProblem map = Map("map 64 f32 = cast:f32(0) sqrt(0) constant:f32(0) negative(2) exp(4)");
  map.further = {0, 1, 2};
  const MapCode code = Lower(map);
  ASSERT_EQ(code.results.size(), 4u);
  ASSERT_EQ(code.instructions.size(), 4u);
  EXPECT_EQ(code.results[0], kLastResult);
  EXPECT_EQ(code.results[1], code.instructions[0].to) << "where the input was loaded to";
  EXPECT_EQ(code.results[2], code.instructions[1].to);
  EXPECT_EQ(code.results[3], 0 | kUniformBit);
  EXPECT_EQ(code.instructions[2].to, kLastResult);
  EXPECT_NE(code.results[1], code.results[2]);
  EXPECT_EQ(code.slots, 2);
}

TEST(MapCodeTest, ConstantsAndInputsOfOneElementTakeNoSlot) {
  const MapCode code = Lower(Map("map 8x9 f32 f32@0,0 = constant:f32(0) multiply(0,2) add(3,1)"));
  ASSERT_EQ(code.uniforms.size(), 2u);
  EXPECT_TRUE(code.uniforms[0].is_input);
  EXPECT_EQ(code.uniforms[0].index, 1);
  EXPECT_FALSE(code.uniforms[1].is_input);
  EXPECT_EQ(code.slots, 0);
  ASSERT_EQ(code.instructions.size(), 3u);
  EXPECT_EQ(code.instructions[1].from[1], 1 | kUniformBit);
  EXPECT_EQ(code.instructions[2].from[1], 0 | kUniformBit);
}

TEST(MapCodeTest, NumbersOfAnotherSizeGetAnotherSlot) {
  const MapCode code =
      Lower(Map("map 64 f32 = sqrt(0) cast:f64(1) equal(2,2) where(3,2,2) cast:f32(4) add(5,1)"));
  for (const MapInstruction& instruction : code.instructions) {
    if (instruction.to == kLastResult || instruction.code == kLoadCode) continue;
    for (const std::uint16_t from : instruction.from) EXPECT_NE(instruction.to, from);
  }
  EXPECT_EQ(code.slot_bytes, 8);
}

TEST(MapCodeTest, BoolsAreComputedByLogic) {
  const MapCode code = Lower(Map("map 64 bool bool = add(0,1) multiply(2,1) bitwise_invert(3)"));
  EXPECT_EQ(code.instructions[2].code, CodeOf(MapOp::kLogicalOr, NumberType::kU32));
  EXPECT_EQ(code.instructions[3].code, CodeOf(MapOp::kLogicalAnd, NumberType::kU32));
  EXPECT_EQ(code.instructions[4].code, CodeOf(MapOp::kLogicalNot, NumberType::kU32));
}

TEST(MapCodeTest, OnlyResultsThatAreNarrowerThanTheirNumbersAreRounded) {
  EXPECT_EQ(Lower(Map("map 64 f16 = exp(0)")).instructions.back().rounds, 1);
  EXPECT_EQ(Lower(Map("map 64 i8 = negative(0)")).instructions.back().rounds, 1);
  for (const char* text : {"map 64 f32 = exp(0)", "map 64 i64 = negative(0)", "map 64 f16 f16 = less(0,1)",
                           "map 64 f32 = cast:f16(0)"}) {
    EXPECT_EQ(Lower(Map(text)).instructions.back().rounds, 0) << text;
  }
}

TEST(MapCodeTest, EveryOperationHasAFunctionForTheTypesThatItTakes) {
  for (std::size_t i = 0; i < kMapOps.size(); ++i) {
    const auto op = static_cast<MapOp>(i);
    for (const DType dtype : kAllDTypes) {
      if (RowOf(op).operands == 0 || op == MapOp::kCast || !Has(RowOf(op).takes, dtype)) continue;
      MapProblem map{.dtype = dtype, .shape = {3}};
      const bool selects = op == MapOp::kWhere;
      if (selects) map.inputs.push_back({DType::kBool, {1}});
      map.inputs.push_back({dtype, {1}});
      const auto x = static_cast<std::int16_t>(selects ? 1 : 0);
      map.nodes = {{op, ResultOf(op, dtype), {0, x, x}}};
      const std::uint16_t code = Lower(map).instructions.back().code;
      const auto lowered = static_cast<MapOp>(code / kNumberTypes);
      const auto type = static_cast<NumberType>(code % kNumberTypes);
      EXPECT_TRUE(lowered == MapOp::kWhere || HasFunction(lowered, type))
          << Name(op) << " of " << Name(dtype);
    }
  }
}

TEST(MapWalkTest, FusesAxesThatAllInputsContinue) {
  const MapWalk dense = MapWalk::Of(Map("map 4x5x6 f32 f32 = add(0,1)"));
  EXPECT_EQ(dense.rank, 1);
  EXPECT_EQ(dense.dims[0], 120);
  const MapWalk rows = MapWalk::Of(Map("map 4x5x6 f32 f32@0,0,1 = add(0,1)"));
  EXPECT_EQ(rows.rank, 2);
  EXPECT_EQ(rows.dims[0], 20);
  EXPECT_EQ(rows.dims[1], 6);
  EXPECT_EQ(rows.strides[1][0], 0);
  EXPECT_EQ(MapWalk::Of(Map("map 1x1 f32 = exp(0)")).rank, 0);
}

TEST(MapCodeTest, CastsThatChangeNothingAreLeftOut) {
  const MapCode copy = Lower(Map("map 64 u8 = cast:u8(0)"));
  ASSERT_EQ(copy.instructions.size(), 1u);
  EXPECT_EQ(copy.instructions[0].code, kLoadCode);
  EXPECT_EQ(copy.results[0], kLastResult);
  const MapCode filled = Lower(Map("map 64 = constant:f32(0) cast:f32(0)"));
  EXPECT_TRUE(filled.instructions.empty());
  EXPECT_EQ(filled.results[0], 0 | kUniformBit);
  const MapCode changed = Lower(Map("map 64 f32 = cast:i32(0)"));
  ASSERT_EQ(changed.instructions.size(), 2u);
  EXPECT_NE(changed.instructions[1].code, kLoadCode);
  // x is read by the sum alone, through both casts.
  const MapCode sum = Lower(Map("map 64 f32 = cast:f32(0) cast:f32(1) add(2,0)"));
  ASSERT_EQ(sum.instructions.size(), 2u);
  EXPECT_EQ(sum.slots, 0);
}

TEST(MapCodeTest, AnIndexIsARowOfTheWalk) {
  const MapProblem map = Map(
      "map 4x5 f32 = index:i32(1) index:i32(0) index:i32(1) less(1,2) less(2,3) where(4,0,0) where(5,6,0)");
  const MapCode code = Lower(map);
  std::vector<int> rows;
  for (const MapInstruction& instruction : code.instructions) {
    if (instruction.code == kIndexCode) rows.push_back(instruction.from[0]);
  }
  EXPECT_THAT(rows, testing::UnorderedElementsAre(1, 2, 1));
  const MapWalk walk = MapWalk::Of(map);
  ASSERT_EQ(walk.strides.size(), 4u);  // the input, two axes, the result
  EXPECT_EQ(walk.rank, 2);
  EXPECT_EQ(walk.strides[1][1], 1);
  EXPECT_EQ(walk.strides[2][0], 1);
  EXPECT_EQ(walk.of_result()[0], 5);
}

TEST(MapWalkTest, FusesNoAxesThatTheResultHasApart) {
  const MapWalk walk = MapWalk::Of(Map("map 4x6 f32 =@8,1 exp(0)"));
  EXPECT_EQ(walk.rank, 2);
  const MapWalk backward = MapWalk::Of(Map("map 4x6 f32@-6,-1 = exp(0)"));
  EXPECT_EQ(backward.rank, 1);  // a row as long as the input, from its end
  EXPECT_EQ(backward.strides[0][0], -1);
}

}  // namespace
}  // namespace warpline
