#include "server/plan/address_table.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/programs.h"

namespace warpline {
namespace {

const Shape kShape{3, 5};

TEST(AddressTableTest, TensorsLieInTheirAreasWhereThePlanPutsThem) {
  const Program program = ScaleThenTranspose(kShape);
  const MemoryPlan plan = PlanMemory(program);
  std::vector<std::byte> input(plan.input_bytes), output(plan.output_bytes), scratch(plan.scratch_bytes);
  AddressTable table(plan);
  table.PlaceInputs(plan, MakeBindings(plan), input.data());
  table.PlaceOutputs(MakeBindings(plan), output.data());
  table.PlaceScratch(plan, scratch.data());
  EXPECT_EQ(table.tensors[0], input.data());
  EXPECT_EQ(table.tensors[1], scratch.data());
  EXPECT_EQ(table.tensors[2], output.data());
}

TEST(AddressTableTest, EveryInputAndOutputIsBoundAndNothingElse) {
  const MemoryPlan plan = PlanMemory(ScaleThenTranspose(kShape));
  const Bindings bindings = MakeBindings(plan);
  ASSERT_EQ(bindings.size(), 2u);
  EXPECT_EQ(bindings[0].tensor, 0);
  EXPECT_EQ(bindings[0].staged.area, Area::kInput);
  EXPECT_EQ(bindings[1].tensor, 2);
  EXPECT_EQ(bindings[1].staged.area, Area::kOutput);
}

TEST(AddressTableTest, ScalarsTravelBehindTheInputs) {
  const Program program = ScaleThenTranspose(kShape);
  const MemoryPlan plan = PlanMemory(program);
  std::vector<std::byte> input(plan.input_bytes);
  AddressTable table(plan);
  table.PlaceInputs(plan, MakeBindings(plan), input.data());
  EXPECT_EQ(table.OperandsOf(program.steps[0], 0).scalars,
            reinterpret_cast<const StepScalars*>(input.data() + kTensorAlignment));
  EXPECT_EQ(table.OperandsOf(program.steps[1], 1).scalars, nullptr) << "a transpose reads none";
}

TEST(AddressTableTest, AStepReadsAndWritesWhereTheTableSays) {
  const Program program = ScaleThenTranspose(kShape);
  const MemoryPlan plan = PlanMemory(program);
  std::byte bytes[4];
  AddressTable table(plan);
  for (int i = 0; i < 3; ++i) table.tensors[i] = &bytes[i];
  table.workspace = {&bytes[3], 1};
  const Operands operands = table.OperandsOf(program.steps[1], 1);
  EXPECT_EQ(operands.in[0], &bytes[1]);
  EXPECT_EQ(operands.out, &bytes[2]);
  EXPECT_EQ(operands.workspace, &bytes[3]);
  EXPECT_EQ(operands.workspace_bytes, 1u);
}

TEST(AddressTableTest, SharedTensorsLieInTheirOwnMemoryOrInItsImage) {
  const Program program = ScaleThenTranspose(kShape);
  const MemoryPlan plan = PlanMemory(program, {.resident = {}, .shared = {0, 2}});
  EXPECT_EQ(plan.output_bytes, 0u);
  EXPECT_EQ(plan.shared_bytes, 256u + 60);
  std::vector<std::byte> region(4096), block(4096);
  Bindings bindings = MakeBindings(plan);
  for (Binding& binding : bindings) {
    const std::size_t at = binding.tensor == 0 ? 8 : 1024;
    binding.memory = Buffer(std::span(region).subspan(at, 60), {.kind = Place::Kind::kPinned}, nullptr);
  }
  AddressTable direct(plan);
  direct.PlaceShared(bindings);
  EXPECT_EQ(direct.tensors[0], region.data() + 8);
  EXPECT_EQ(direct.tensors[2], region.data() + 1024);
  EXPECT_FALSE(SharedSlicesAreAligned(bindings));
  const AddressTable image = TableInBlock(plan, bindings, block);
  const BlockLayout layout(plan);
  EXPECT_EQ(image.tensors[0], block.data() + layout.shared);
  EXPECT_EQ(image.tensors[2], block.data() + layout.shared + 256);
  EXPECT_EQ(image.tensors[1], block.data() + layout.scratch);
  EXPECT_GE(layout.scratch, layout.shared + 256 + 60);
}

TEST(AddressTableTest, AreasInOneBlockAreAlignedAndDoNotMeet) {
  const Program program = ScaleThenTranspose(kShape);
  const MemoryPlan plan = PlanMemory(program);
  std::vector<std::byte> block(4096);
  const AddressTable table = TableInBlock(plan, MakeBindings(plan), block);
  // 60 bytes of x, the scalars at the next multiple of 256, then an area at each further one.
  EXPECT_EQ(table.tensors[0], block.data());
  EXPECT_EQ(table.tensors[2], block.data() + 512);
  EXPECT_EQ(table.tensors[1], block.data() + 768);
  EXPECT_EQ(table.workspace.data(), block.data() + 1024);
  EXPECT_EQ(table.workspace.size(), 4096u - 1024);
  EXPECT_EQ(BlockLayout(plan).workspace, 1024u);
}

}  // namespace
}  // namespace warpline
