// From a RunRequest to a Program, and what is refused on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "kernels/map/pair.h"
#include "server/base/errors.h"
#include "server/rpc/codec/convert.h"
#include "tests/server/rpc/codec/scanned_requests.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::warpline::testing::IsOk;

// sums = reduce(transpose(a @ b)), for tests to break.
struct Chain : Scanned {
  Chain() {
    AddInput("a", {2, 3}, 24);
    AddInput("b", {3, 4}, 48);
    AddStep("product", {"a", "b"}).mutable_gemm();
    AddStep("turned", {"product"}).mutable_transpose();
    v1::ReduceStep& sum = *AddStep("sums", {"turned"}).mutable_reduce();
    sum.set_op(v1::REDUCE_OP_SUM);
    sum.add_axes(1);
    request.mutable_program()->add_outputs("sums");
  }
  void AddInput(const std::string& name, const std::vector<std::int64_t>& shape, std::int64_t bytes) {
    v1::NamedTensor& input = *request.add_inputs();
    input.set_name(name);
    Fill(input.mutable_tensor(), v1::DATA_TYPE_F32, shape, bytes);
  }
  v1::Step& AddStep(const std::string& name, const std::vector<std::string>& inputs) {
    v1::Step& step = *request.mutable_program()->add_steps();
    step.set_name(name);
    for (const std::string& input : inputs) step.add_inputs(input);
    return step;
  }
  v1::Step& step(int i) { return *request.mutable_program()->mutable_steps(i); }
  v1::RunRequest request;
};

TEST(ConvertRunTest, NamesBecomeNumbers) {
  const auto conversion = Convert(Chain());
  ASSERT_THAT(conversion, IsOk());
  const Program& program = conversion->program;
  EXPECT_EQ(program.num_inputs, 2);
  ASSERT_EQ(program.steps.size(), 3u);
  EXPECT_THAT(program.steps[0].inputs, ElementsAre(0, 1));
  EXPECT_EQ(program.steps[0].output, 2);
  EXPECT_THAT(program.steps[1].inputs, ElementsAre(2));
  EXPECT_THAT(program.steps[2].inputs, ElementsAre(3));
  EXPECT_THAT(program.outputs, ElementsAre(4));
  EXPECT_EQ(program.tensors[3].shape, (Shape{4, 2}));
  EXPECT_EQ(program.tensors[4].shape, Shape{4});
  EXPECT_THAT(conversion->step_names, ElementsAre("product", "turned", "sums"));
  EXPECT_EQ(conversion->sources.size(), 2u);
}

TEST(ConvertRunTest, AResultMayBeReadTwiceAndReturned) {
  Chain run;
  run.AddStep("twice", {"product", "product"}).mutable_add();
  run.request.mutable_program()->add_outputs("twice");
  run.request.mutable_program()->add_outputs("product");
  const auto conversion = Convert(run);
  ASSERT_THAT(conversion, IsOk());
  EXPECT_THAT(conversion->program.steps[3].inputs, ElementsAre(2, 2));
  EXPECT_THAT(conversion->program.outputs, ElementsAre(4, 5, 2));
}

TEST(ConvertRunTest, TheApiHasTheOperationsThatHaveKernelsAndViews) {
  const auto* operations = v1::Step::descriptor()->FindOneofByName("operation");
  ASSERT_NE(operations, nullptr);
  // Views, of which a transpose has kernels too, concat, three that are maps, and set_slice, roll, tile,
  // repeat and pad, which are copies. take_along_axis is a take, and argsort and topk are sorts.
  constexpr int kOthers = 4 + 1 + 3 + 5 + 1 + 2;
  EXPECT_EQ(operations->field_count(), static_cast<int>(kAllOps.size()) + kOthers);
}

// A matrix, and steps that read it in other orders.
struct Views : Chain {
  Views() {
    request = {};
    AddInput("x", {4, 16}, 256);
  }
  void Output(const std::string& name) { request.mutable_program()->add_outputs(name); }
};

TEST(ConvertRunTest, AProductReadsTheTransposeOfAMatrixWhereItLies) {
  Views run;
  run.AddStep("t", {"x"}).mutable_transpose();
  run.AddStep("gram", {"t", "x"}).mutable_gemm();
  run.Output("gram");
  const auto conversion = Convert(run);
  ASSERT_THAT(conversion, IsOk());
  const Program& program = conversion->program;
  ASSERT_EQ(program.steps.size(), 1u);
  EXPECT_EQ(program.num_parts, 2);
  EXPECT_EQ(program.steps[0].part_of, 1);
  EXPECT_THAT(program.steps[0].inputs, ElementsAre(0, 0));
  const auto& gemm = std::get<GemmProblem>(program.steps[0].problem);
  EXPECT_TRUE(gemm.trans_a);
  EXPECT_FALSE(gemm.trans_b);
  EXPECT_EQ(gemm.lda, 16);
  EXPECT_EQ(gemm.m, 16);
}

TEST(ConvertRunTest, AViewIsCopiedOnceForThoseWhoNeedIt) {
  Views run;
  v1::SliceStep& slice = *run.AddStep("odd", {"x"}).mutable_slice();
  slice.add_starts(1), slice.add_ends(16), slice.add_axes(1), slice.add_steps(2);
  run.AddStep("sum", {"odd"}).mutable_reduce()->set_op(v1::REDUCE_OP_SUM);
  run.AddStep("max", {"odd"}).mutable_reduce()->set_op(v1::REDUCE_OP_MAX);
  run.Output("sum"), run.Output("odd"), run.Output("max");
  const auto conversion = Convert(run);
  ASSERT_THAT(conversion, IsOk());
  const Program& program = conversion->program;
  ASSERT_EQ(program.steps.size(), 3u);
  EXPECT_THAT(program.steps[0].input_offsets, ElementsAre(sizeof(float)));
  EXPECT_EQ(program.steps[0].part_of, 0);
  EXPECT_THAT(program.steps[1].inputs, ElementsAre(1));
  EXPECT_THAT(program.steps[2].inputs, ElementsAre(1));
  EXPECT_THAT(program.outputs, ElementsAre(2, 1, 3));
  EXPECT_THAT(conversion->output_names, ElementsAre("sum", "odd", "max"));
  EXPECT_THAT(VariantsByPart(program, std::vector<std::string_view>{"copies", "sums", "sums"}),
              ElementsAre("copies", "sums", "sums"));
}

TEST(ConvertRunTest, AMapReadsAViewWhereItLiesUnlessAnotherAxisIsTheInnermost) {
  Views run;
  v1::SliceStep& flip = *run.AddStep("flip", {"x"}).mutable_slice();
  flip.add_starts(-1), flip.add_ends(-9), flip.add_steps(-1);
  run.AddStep("t", {"x"}).mutable_transpose();
  run.AddStep("a", {"x", "flip"}).mutable_add();
  run.AddStep("b", {"t", "t"}).mutable_add();
  run.Output("a"), run.Output("b");
  const auto conversion = Convert(run);
  ASSERT_THAT(conversion, IsOk());
  const Program& program = conversion->program;
  ASSERT_EQ(program.steps.size(), 3u);
  EXPECT_THAT(program.steps[0].inputs, ElementsAre(0, 0));
  EXPECT_THAT(program.steps[0].input_offsets, ElementsAre(0, 48 * sizeof(float)));
  EXPECT_TRUE(std::holds_alternative<TransposeProblem>(program.steps[1].problem));
  EXPECT_EQ(program.steps[1].part_of, 1);
  EXPECT_THAT(VariantsByPart(program, std::vector<std::string_view>{"m", "t", "m"}),
              ElementsAre("view", "t", "m", "m"));
}

TEST(ConvertRunTest, WhatAMapRepeatsIsCopiedOnce) {
  Views run;
  run.AddStep("t", {"x"}).mutable_transpose();
  v1::BroadcastStep& wide = *run.AddStep("wide", {"t"}).mutable_broadcast_to();
  for (const int size : {1000000, 16, 4}) wide.add_shape(size);
  run.AddStep("twice", {"wide", "wide"}).mutable_add();
  run.AddStep("sum", {"twice"}).mutable_reduce()->set_op(v1::REDUCE_OP_SUM);
  run.Output("sum");
  const auto conversion = Convert(run);
  ASSERT_THAT(conversion, IsOk());
  const Program& program = conversion->program;
  ASSERT_EQ(program.steps.size(), 3u);
  EXPECT_EQ(program.tensors[1].bytes, 4 * 16 * sizeof(float));
  EXPECT_EQ(std::get<MapProblem>(program.steps[1].problem).inputs[0].strides, (Strides{0, 4, 1}));
}

TEST(ConvertRunTest, AllResultsTogetherHaveALimit) {
  Views run;
  run.AddStep("one", {"x"}).mutable_reduce()->set_op(v1::REDUCE_OP_SUM);
  for (int i = 0; i < 20; ++i) {
    v1::MapStep& map = *run.AddStep("m" + std::to_string(i), {"one"}).mutable_map();
    map.add_shape(std::int64_t{1} << 54);
    v1::MapNode& node = *map.add_nodes();
    node.set_op(v1::MAP_OP_EXP);
    node.add_operands(0);
  }
  EXPECT_THAT(
      std::string(Convert(run).status().message()),
      ::testing::HasSubstr("step \"m15\": with this step the results of the program take more than 2^60"));
}

TEST(ConvertRunTest, AnOutputOfAnotherShapeIsTheResultItself) {
  Views run;
  run.AddStep("sum", {"x", "x"}).mutable_add();
  run.AddStep("flat", {"sum"}).mutable_reshape()->add_shape(-1);
  run.AddStep("again", {"sum"}).mutable_reshape()->add_shape(64);
  run.Output("flat"), run.Output("again");
  const auto conversion = Convert(run);
  ASSERT_THAT(conversion, IsOk());
  const Program& program = conversion->program;
  ASSERT_EQ(program.steps.size(), 2u);  // one result cannot be two outputs
  EXPECT_THAT(program.outputs, ElementsAre(1, 2));
  EXPECT_EQ(program.tensors[1].shape, Shape{64});
  EXPECT_EQ(program.steps[1].part_of, 2);
}

TEST(ConvertRunTest, ConcatWritesPartsOfOneTensor) {
  Views run;
  run.AddStep("wide", {"x", "x", "x"}).mutable_concat()->set_axis(-1);
  run.Output("wide");
  const auto conversion = Convert(run);
  ASSERT_THAT(conversion, IsOk());
  const Program& program = conversion->program;
  ASSERT_EQ(program.steps.size(), 3u);
  ASSERT_EQ(program.tensors.size(), 2u);
  EXPECT_EQ(program.tensors[1].shape, (Shape{4, 48}));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(program.steps[i].output, 1);
    EXPECT_EQ(program.steps[i].output_offset, 16 * i * sizeof(float));
    EXPECT_EQ(std::get<MapProblem>(program.steps[i].problem).OutStrides(), (Strides{48, 1}));
  }
  EXPECT_THAT(VariantsByPart(program, std::vector<std::string_view>{"m", "m", "m"}), ElementsAre("m"));
}

TEST(ConvertRunTest, AViewHasNoVariantButATransposeThatNamesOneIsACopy) {
  Views run;
  run.AddStep("t", {"x"}).mutable_transpose();
  run.step(0).set_variant("tiles");
  run.Output("t");
  const auto conversion = Convert(run);
  ASSERT_THAT(conversion, IsOk());
  ASSERT_EQ(conversion->program.steps.size(), 1u);
  EXPECT_EQ(conversion->program.steps[0].variant, "tiles");
  run.step(0).mutable_reshape()->add_shape(64);
  EXPECT_EQ(Convert(run).status().message(),
            "program.steps[0].variant: step \"t\": \"tiles\"; a view has none");
}

TEST(ConvertRunTest, AProgramComesDownToALimitedNumberOfKernels) {
  Views run;
  for (int i = 0; i < 10; ++i) {
    v1::Step& step = run.AddStep("c" + std::to_string(i), std::vector<std::string>(120, "x"));
    step.mutable_concat();
    run.Output("c" + std::to_string(i));
  }
  EXPECT_EQ(
      Convert(run).status().message(),
      "program.steps[8].operation: step \"c8\": with this step the program comes down to more than 1024 "
      "kernels, which is the limit");
}

TEST(ConvertRunTest, EveryOperationIsAStep) {
  Chain run;
  v1::GemmStep& gemm = *run.AddStep("d", {"a", "b", "product", "row"}).mutable_gemm();
  gemm.set_beta(2), gemm.set_has_bias(true), gemm.set_activation(v1::ACTIVATION_RELU);
  run.AddInput("row", {4}, 16);
  run.AddStep("half", {"d"}).mutable_cast()->set_data_type(v1::DATA_TYPE_F16);
  run.AddStep("scaled", {"half"}).mutable_scale()->set_factor(-1.5);
  run.AddStep("total", {"scaled", "scaled"}).mutable_add();
  run.request.mutable_program()->add_outputs("total");
  const auto conversion = Convert(run);
  ASSERT_THAT(conversion, IsOk());
  const std::vector<Step>& steps = conversion->program.steps;
  EXPECT_TRUE(std::get<GemmProblem>(steps[3].problem).has_bias);
  EXPECT_EQ(steps[3].inputs.size(), 4u);
  EXPECT_EQ(std::get<MapProblem>(steps[4].problem).OutDType(), DType::kF16);
  EXPECT_EQ(ScalarsOf(*conversion, run).at(2).alpha_f32, -1.5f);
  EXPECT_EQ(PairOf(std::get<MapProblem>(steps[5].problem))->op, PairOp::kScale);
  EXPECT_EQ(PairOf(std::get<MapProblem>(steps[6].problem))->op, PairOp::kAdd);
}

TEST(ConvertRunTest, ConstantsOfMapsAreScalarsOfTheRequest) {
  Chain run;
  v1::MapStep& map = *run.AddStep("mapped", {"product"}).mutable_map();
  const auto constant = [&](double value) {
    v1::MapNode& node = *map.add_nodes();
    node.set_op(v1::MAP_OP_CONSTANT);
    node.set_data_type(v1::DATA_TYPE_F32);
    node.set_real(value);
  };
  const auto apply = [&](v1::MapOp op, int x, int y) {
    v1::MapNode& node = *map.add_nodes();
    node.set_op(op);
    node.add_operands(x);
    node.add_operands(y);
  };
  constant(0.5), constant(0), apply(v1::MAP_OP_MULTIPLY, 0, 1), apply(v1::MAP_OP_ADD, 3, 2);
  run.request.mutable_program()->add_outputs("mapped");
  const auto conversion = Convert(run);
  ASSERT_THAT(conversion, IsOk());
  const ScalarValues scalars = ScalarsOf(*conversion, run);
  ASSERT_EQ(scalars.size(), 3u);  // of the product of matrices first
  EXPECT_EQ(scalars.at(1).alpha_f32, 0.5f);
  EXPECT_EQ(scalars.at(2).alpha_f64, 0);
  EXPECT_EQ(ScalarCount(conversion->program.steps[3].problem), 2);
}

// A map of "product" with two results, "halves" and its own, "mapped".
v1::MapStep& AddTwoResults(Chain& run) {
  v1::MapStep& map = *run.AddStep("mapped", {"product"}).mutable_map();
  for (const int operand : {0, 1}) {
    v1::MapNode& node = *map.add_nodes();
    node.set_op(operand == 0 ? v1::MAP_OP_EXP : v1::MAP_OP_ISNAN);
    node.add_operands(operand);
  }
  map.add_outputs()->set_name("halves");
  return map;
}

TEST(ConvertRunTest, FurtherResultsOfAMapAreReadAndReturnedByTheirNames) {
  Chain run;
  AddTwoResults(run);
  run.AddStep("later", {"halves"}).mutable_transpose();
  for (const char* name : {"halves", "later", "mapped"}) run.request.mutable_program()->add_outputs(name);
  const auto conversion = Convert(run);
  ASSERT_THAT(conversion, IsOk());
  const Program& program = conversion->program;
  const Step& map = program.steps[3];
  ASSERT_EQ(map.further.size(), 1u);
  EXPECT_EQ(map.further[0], map.output + 1);
  EXPECT_EQ(program.tensors[map.further[0]].dtype, DType::kF32);
  EXPECT_EQ(program.tensors[map.output].dtype, DType::kBool);
  EXPECT_EQ(program.outputs[program.outputs.size() - 3], map.further[0]);
  EXPECT_EQ(program.outputs.back(), map.output);
}

TEST(ConvertRunTest, NamesOfFurtherResultsFollowTheRulesOfSteps) {
  const auto refused = [](const std::string& name, bool uses, bool returns_own = true) {
    Chain run;
    AddTwoResults(run).mutable_outputs(0)->set_name(name);
    if (uses) run.request.mutable_program()->add_outputs(name);
    if (returns_own) run.request.mutable_program()->add_outputs("mapped");
    return std::string(Convert(run).status().message());
  };
  EXPECT_EQ(
      refused("", false),
      "program.steps[3].outputs[0].name: step \"mapped\": missing; a name has 1 to 64 characters out of "
      "letters, digits, '_', '.' and '-'");
  EXPECT_EQ(refused("mapped", false),
            "program.steps[3].outputs[0].name: step \"mapped\": \"mapped\" is already the name of step 3");
  EXPECT_EQ(
      refused("fine", false),
      "program.steps[3].outputs[0].name: step \"mapped\": its result neither is an output nor goes into one");
  EXPECT_EQ(refused("fine", true, false),
            "program.steps[3].name: step \"mapped\": its result neither is an output nor goes into one");
}

TEST(ConvertRunTest, LimitsOfResultsAreCheckedBeforeTheirNames) {
  Chain run;
  v1::MapStep& map = AddTwoResults(run);
  for (int i = 0; i < 7; ++i) map.add_outputs();
  EXPECT_EQ(Convert(run).status().message(),
            "program.steps[3].outputs: step \"mapped\": has 8; a map has at most 7 results beside that of "
            "its last node");
  Chain many;
  for (int i = 0; i < 256; ++i) many.request.mutable_program()->add_outputs("product");
  EXPECT_EQ(Convert(many).status().message(), "program.outputs: 257 are above the limit of 256");
}

TEST(ConvertRunTest, AdditionBroadcasts) {
  Chain run;
  run.AddInput("column", {2, 1}, 8);
  run.AddStep("moved", {"column", "product"}).mutable_add();
  run.request.mutable_program()->add_outputs("moved");
  const auto conversion = Convert(run);
  ASSERT_THAT(conversion, IsOk());
  const PairMap add = *PairOf(std::get<MapProblem>(conversion->program.steps[3].problem));
  EXPECT_EQ(add.shape, (Shape{2, 4}));
  EXPECT_EQ(add.x_strides[0], 1);
  EXPECT_EQ(add.x_strides[1], 0);
  EXPECT_EQ(add.y_strides[0], 4);
}

TEST(ConvertRunTest, PaddedRowsOfInputsAreTakenOver) {
  Chain run;
  run.request.mutable_inputs(0)->mutable_tensor()->set_row_stride(5);
  run.SetPayloadBytes(0, 40);
  EXPECT_EQ(std::get<GemmProblem>(Convert(run)->program.steps[0].problem).lda, 5);
}

TEST(ConvertRunTest, BadProgramIsRefused) {
  struct BadCase {
    std::string name;
    std::function<void(Chain&)> break_it;
    std::string field;
    std::string says;
  };
  const std::vector<BadCase> cases = {
      {"no steps", [](Chain& r) { r.request.mutable_program()->clear_steps(); }, "program.steps",
       "at least 1"},
      {"257 steps",
       [](Chain& r) {
         for (int i = 0; i < 254; ++i) r.AddStep("s" + std::to_string(i), {"a"}).mutable_transpose();
       },
       "program.steps", "257 are above the limit of 256"},
      {"129 inputs",
       [](Chain& r) {
         for (int i = 0; i < 127; ++i) r.AddInput("i" + std::to_string(i), {1}, 4);
       },
       "inputs", "129 are above the limit of 128"},
      {"unnamed step", [](Chain& r) { r.step(1).clear_name(); }, "program.steps[1].name", "missing"},
      {"name with a blank", [](Chain& r) { r.step(1).set_name("a b"); }, "program.steps[1].name",
       "other characters"},
      {"long name", [](Chain& r) { r.request.mutable_inputs(1)->set_name(std::string(65, 'n')); },
       "inputs[1].name", "of 65 characters"},
      {"repeated step", [](Chain& r) { r.step(2).set_name("turned"); }, "program.steps[2].name",
       "\"turned\" is already the name of step 1"},
      {"step named like an input", [](Chain& r) { r.step(2).set_name("a"); }, "program.steps[2].name",
       "already the name of an input"},
      {"repeated input", [](Chain& r) { r.request.mutable_inputs(1)->set_name("a"); }, "inputs[1].name",
       "already the name of an input"},
      {"unknown name", [](Chain& r) { r.step(1).set_inputs(0, "nobody"); }, "program.steps[1].inputs[0]",
       "step \"turned\": \"nobody\" names no input and no step"},
      {"own result", [](Chain& r) { r.step(1).set_inputs(0, "turned"); }, "program.steps[1].inputs[0]",
       "step \"turned\": the step reads its own result"},
      {"cycle", [](Chain& r) { r.step(0).set_inputs(0, "sums"); }, "program.steps[0].inputs[0]",
       "step \"product\": \"sums\" is step 2, which comes later"},
      {"too few inputs", [](Chain& r) { r.step(0).mutable_inputs()->RemoveLast(); },
       "program.steps[0].inputs", "step \"product\": has 1 name; the product reads 2, or 3 with c"},
      {"too many inputs", [](Chain& r) { r.step(2).add_inputs("a"); }, "program.steps[2].inputs",
       "has 2 names; the operation reads 1"},
      {"no inputs", [](Chain& r) { r.step(0).clear_inputs(); }, "program.steps[0].inputs", "has 0 names"},
      {"no operation", [](Chain& r) { r.step(1).clear_operation(); }, "program.steps[1].operation",
       "missing"},
      {"bad option", [](Chain& r) { r.step(2).mutable_reduce()->add_axes(7); }, "program.steps[2].axes",
       "step \"sums\": axis 7 is outside"},
      {"bad operand", [](Chain& r) { r.step(0).set_inputs(1, "a"); }, "program.steps[0].inputs[1].shape",
       "step \"product\": inner size 2"},
      {"long variant", [](Chain& r) { r.step(2).set_variant(std::string(65, 'v')); },
       "program.steps[2].variant", "65 bytes"},
      {"bad tensor", [](Chain& r) { r.SetPayloadBytes(1, 47); }, "inputs[1].tensor.inline", "got 47 bytes"},
      {"no tensor", [](Chain& r) { r.request.mutable_inputs(1)->clear_tensor(); }, "inputs[1].tensor",
       "missing"},
      {"no outputs", [](Chain& r) { r.request.mutable_program()->clear_outputs(); }, "program.outputs",
       "at least 1"},
      {"unknown output", [](Chain& r) { r.request.mutable_program()->set_outputs(0, "x"); },
       "program.outputs[0]", "\"x\" names no step"},
      {"input returned", [](Chain& r) { r.request.mutable_program()->add_outputs("a"); },
       "program.outputs[1]", "\"a\" names no step"},
      {"output named twice", [](Chain& r) { r.request.mutable_program()->add_outputs("sums"); },
       "program.outputs[1]", "\"sums\" is named twice"},
      {"dead step", [](Chain& r) { r.AddStep("idle", {"product"}).mutable_transpose(); },
       "program.steps[3].name", "step \"idle\": its result neither is an output nor goes into one"},
      {"unread input", [](Chain& r) { r.AddInput("spare", {1}, 4); }, "inputs[2].name",
       "\"spare\" is read by no step"},
      {"cast to f8", [](Chain& r) { r.step(1).mutable_cast()->set_data_type(v1::DATA_TYPE_F8E4M3); },
       "program.steps[1].data_type", "nothing is cast to f8e4m3"},
      {"fraction of integers",
       [](Chain& r) {
         for (int i : {0, 1}) r.request.mutable_inputs(i)->mutable_tensor()->set_data_type(v1::DATA_TYPE_I32);
         r.step(0).mutable_add();
         r.request.mutable_inputs(1)->mutable_tensor()->set_shape(0, 1);
         r.request.mutable_inputs(1)->mutable_tensor()->set_shape(1, 3);
         r.SetPayloadBytes(1, 12);
         r.step(1).mutable_scale()->set_factor(0.5);
       },
       "program.steps[1].factor", "0.5; for operands of integers"},
      {"shapes that do not broadcast", [](Chain& r) { r.step(0).mutable_add(); },
       "program.steps[0].inputs[1].shape", "cannot be broadcast"},
  };
  ASSERT_THAT(Convert(Chain()), IsOk());
  for (const BadCase& bad : cases) {
    SCOPED_TRACE(bad.name);
    Chain run;
    bad.break_it(run);
    const absl::Status status = Convert(run).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(FieldOf(status), bad.field) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.says));
  }
}

TEST(ConvertRunTest, ResultsAboveTheLimitTogetherAreRefused) {
  Chain run;
  run.request.mutable_program()->add_outputs("product");
  EXPECT_THAT(Convert(run, 24 + 48), IsOk());
  run.request.mutable_program()->add_outputs("turned");
  const absl::Status status = Convert(run, 24 + 48).status();
  EXPECT_EQ(FieldOf(status), "program.outputs[2]");
  EXPECT_THAT(std::string(status.message()), HasSubstr("80 with those before it; the limit is 72"));
}

TEST(ConvertRunTest, IntermediateMayBeAboveTheLimit) {
  Chain outer;  // a column times a row: 1600 bytes on the way, 80 back
  outer.request.mutable_inputs(0)->mutable_tensor()->set_shape(0, 20);
  outer.request.mutable_inputs(0)->mutable_tensor()->set_shape(1, 1);
  outer.request.mutable_inputs(1)->mutable_tensor()->set_shape(0, 1);
  outer.request.mutable_inputs(1)->mutable_tensor()->set_shape(1, 20);
  outer.SetPayloadBytes(0, 80), outer.SetPayloadBytes(1, 80);
  EXPECT_THAT(Convert(outer, 160), IsOk());
}

}  // namespace
}  // namespace warpline
