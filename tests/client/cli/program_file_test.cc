#include "client/cli/program_file.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <random>

#include "warpline/program.h"

namespace warpline::client {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::ElementsAre;

constexpr char kJson[] = R"({
  "steps": [
    {"name": "p", "inputs": ["a", "op"], "gemm": {"transB": true, "precision": "tf32", "activation" : "relu"}},
    {"name": "sum", "inputs": ["p"], "reduce": {"op": "sum", "axes": [-1], "out_data_type": "f64"}},
    {"name": "\"sum\"", "inputs": ["sum"], "cast": {"dataType": "DATA_TYPE_I8"}}
  ],
  "outputs": ["sum"]
})";

TEST(ProgramTest, TakesShortNamesOfEnumerations) {
  const auto program = ParseProgram(kJson);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->steps(0).gemm().precision(), v1::PRECISION_TF32);
  EXPECT_EQ(program->steps(0).gemm().activation(), v1::ACTIVATION_RELU);
  EXPECT_EQ(program->steps(1).reduce().op(), v1::REDUCE_OP_SUM);
  EXPECT_EQ(program->steps(1).reduce().out_data_type(), v1::DATA_TYPE_F64);
  EXPECT_EQ(program->steps(2).cast().data_type(), v1::DATA_TYPE_I8);
}

TEST(ProgramTest, TellsOperationsOfOneFieldNameApart) {
  const auto program = ParseProgram(R"({"steps": [
      {"name": "s", "inputs": ["x"], "scan": {"op": "sum", "axis": 1}},
      {"name": "m", "inputs": ["s"], "map": {"nodes": [{"op": "exp", "operands": [0]}, {"op": "abs"}]}},
      {"name": "r", "inputs": ["m"], "reduce": {"op": "sum"}}]})");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->steps(0).scan().op(), v1::SCAN_OP_SUM);
  EXPECT_EQ(program->steps(1).map().nodes(0).op(), v1::MAP_OP_EXP);
  EXPECT_EQ(program->steps(1).map().nodes(1).op(), v1::MAP_OP_ABS);
  EXPECT_EQ(program->steps(2).reduce().op(), v1::REDUCE_OP_SUM);
}

TEST(ProgramTest, LeavesNamesOfArraysAlone) {
  const auto program = ParseProgram(kJson);
  ASSERT_TRUE(program.ok());
  EXPECT_THAT(program->steps(0).inputs(), ElementsAre("a", "op"));
  EXPECT_EQ(program->steps(1).name(), "sum");
  EXPECT_EQ(program->steps(2).name(), "\"sum\"");
  EXPECT_THAT(program->outputs(), ElementsAre("sum"));
}

TEST(ProgramTest, ReadsWhatProtobufWrites) {
  const auto program = ParseExpression("reduce(gemm(a, b, alpha=-inf, c=d), op=std, ddof=1, axes=[0, -1])");
  ASSERT_TRUE(program.ok()) << program.status();
  std::string json;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(*program, &json).ok());
  const auto back = ParseProgram(json);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*program, *back)) << json;
}

TEST(ProgramTest, SaysWhatIsWrong) {
  for (const char* json : {"", "[]", "{", R"({"steps": [{"reduce": {"op": "median"}}]})", R"({"step": []})",
                           R"({"steps": "\)", R"({"op)", "\"", R"({"outputs": ["\u00"]})",
                           R"({"outputs": ["a",]})", R"({outputs: []})", R"({'outputs': []})"}) {
    const auto program = ParseProgram(json);
    EXPECT_TRUE(absl::IsInvalidArgument(program.status())) << json;
  }
  EXPECT_THAT(std::string(ParseProgram(R"({"steps": [{"reduce": {"op": "median"}}]})").status().message()),
              testing::HasSubstr("median"));
  EXPECT_THAT(std::string(ParseProgram("{\n \"outputs\": [}").status().message()),
              testing::HasSubstr("line 2"));
  // Not so deep that reading it would exhaust the stack.
  const std::string deep(100000, '[');
  EXPECT_THAT(std::string(ParseProgram(deep + std::string(100000, ']')).status().message()),
              testing::HasSubstr("nested more than 32 deep"));
}

TEST(ProgramTest, TakesDamagedTextWithoutHarm) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string json = kJson;
    for (int i = 0; i < 2; ++i) json[random() % json.size()] = "\"\\{}[]:,x"[random() % 9];
    json.resize(json.size() - random() % 3 * 100);
    (void)ParseProgram(json);
  }
}

TEST(ProgramTest, KnowsWhatItReads) {
  EXPECT_THAT(InputsOf(*ParseProgram(kJson)), ElementsAre("a", "op"));
  EXPECT_THAT(InputsOf(*ParseExpression("add(gemm(b, a), b)")), ElementsAre("b", "a"));
  // Further results of steps are no inputs.
  EXPECT_THAT(InputsOf(*ParseExpression("v = topk(x, k=2, indices=i); take(v, i)")), ElementsAre("x"));
  EXPECT_THAT(InputsOf({}), ElementsAre());
}

}  // namespace
}  // namespace warpline::client
