#include "client/src/expression_functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/src/result_type.h"
#include "warpline/program.h"

namespace warpline::client {
namespace {

using testing::ElementsAre;

// A matrix x of f32 with 3 rows of 4, a vector i of i64 with 5 elements, a mask m of the shape of x, and a
// matrix e without elements.
const ProgramInputs& Inputs() {
  static const ProgramInputs inputs = {{"x", {.dtype = DType::kF32, .shape = {3, 4}}},
                                       {"i", {.dtype = DType::kI64, .shape = {5}}},
                                       {"m", {.dtype = DType::kBool, .shape = {3, 4}}},
                                       {"e", {.dtype = DType::kF32, .shape = {0, 4}}}};
  return inputs;
}

// Parses the text, and returns the type of its result.
TensorSpec TypeOf(const std::string& text) {
  const auto program = ParseExpression(text, Inputs());
  EXPECT_TRUE(program.ok()) << text << ": " << program.status();
  if (!program.ok()) return {};
  const auto type = TypeInProgram(*program, Inputs(), program->outputs(0));
  EXPECT_TRUE(type.ok()) << text << ": " << type.status();
  return type.ok() && type->has_value() ? **type : TensorSpec{};
}

std::string ErrorOf(const std::string& text) {
  const auto program = ParseExpression(text, Inputs());
  EXPECT_TRUE(absl::IsInvalidArgument(program.status())) << text;
  return std::string(program.status().message());
}

TEST(ExpressionFunctionsTest, HaveTheShapesOfNumPy) {
  for (const char* name : {"median(x", "quantile(x, q=0.25"}) {
    const std::string call = name;
    EXPECT_EQ(TypeOf(call + ")").shape, Shape{});
    EXPECT_EQ(TypeOf(call + ", axis=0)").shape, (Shape{4}));
    EXPECT_EQ(TypeOf(call + ", axis=-1)").shape, (Shape{3}));
    EXPECT_EQ(TypeOf(call + ", axis=1, keepdims=true)").shape, (Shape{3, 1}));
    EXPECT_EQ(TypeOf(call + ", keepdims=True)").shape, (Shape{1, 1}));
  }
  EXPECT_EQ(TypeOf("cumsum(x)").shape, (Shape{12}));
  EXPECT_EQ(TypeOf("cumprod(x, axis=1)").shape, (Shape{3, 4}));
}

TEST(ExpressionFunctionsTest, OfIntegersGiveF64) {
  EXPECT_EQ(TypeOf("median(i)").dtype, DType::kF64);
  EXPECT_EQ(TypeOf("quantile(i, q=0.3)").dtype, DType::kF64);
  EXPECT_EQ(TypeOf("median(x)").dtype, DType::kF32);
}

TEST(ExpressionFunctionsTest, SelectPlacesInsteadOfSorting) {
  const auto program = ParseExpression("median(x, axis=1)", Inputs());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(program->steps(0).sort().kth(), ElementsAre(1, 2, 3));
  const auto quantile = ParseExpression("quantile(i, q=1)", Inputs());
  ASSERT_TRUE(quantile.ok()) << quantile.status();
  EXPECT_THAT(quantile->steps(2).sort().kth(), ElementsAre(4));
}

TEST(ExpressionFunctionsTest, RefuseWhatTheyCannotCompute) {
  EXPECT_EQ(ErrorOf("quantile(x)"), "column 1: quantile lacks q, as in q=0.25");
  EXPECT_EQ(ErrorOf("quantile(x, q=2)"), "column 1: quantile has q=2: it is in [0, 1]");
  EXPECT_EQ(ErrorOf("quantile(x, q=nan)"), "column 1: quantile has q=nan: it is in [0, 1]");
  EXPECT_EQ(ErrorOf("1 + median(x, axis=2)"), "column 5: median has axis=2, but its operand has 2 axes");
  EXPECT_EQ(ErrorOf("median(e)"), "column 1: median of no elements has no value");
  EXPECT_EQ(ErrorOf("nonzero(x)"),
            "column 1: nonzero lacks axis, as its operand has 2 axes: axis=0 gives the places along it");
  EXPECT_EQ(ErrorOf("median(x @ x)").substr(0, 10), "column 1: ");
}

TEST(ExpressionFunctionsTest, NeedTheTypesOfInputsThatMatter) {
  for (const char* text : {"median(y)", "unique(y + 1)", "nonzero(y)", "y[0]", "x[y]", "pad(y, values=7)"}) {
    const auto program = ParseExpression(text, Inputs());
    EXPECT_TRUE(absl::IsFailedPrecondition(program.status())) << text << ": " << program.status();
  }
  EXPECT_EQ(ParseExpression("1 + median(y * 2)", Inputs()).status().message(),
            "column 5: median needs the type and shape of the input y, which is not given");
  EXPECT_EQ(ErrorOf("x[None]"), "column 2: an index adds no axes here: reshape(x, shape=[...]) does");
  // No shape matters for these.
  for (const char* text : {"cumsum(y)", "y[1:, ::-2]", "y[..., :3]", "median(x) + y"}) {
    EXPECT_TRUE(ParseExpression(text, Inputs()).ok()) << text;
  }
}

TEST(ExpressionIndexTest, TakesWhatNumPyTakes) {
  EXPECT_EQ(TypeOf("x[0]").shape, (Shape{4}));
  EXPECT_EQ(TypeOf("x[-1, -4]").shape, Shape{});
  EXPECT_EQ(TypeOf("x[1:]").shape, (Shape{2, 4}));
  EXPECT_EQ(TypeOf("x[::2, -1]").shape, (Shape{2}));
  EXPECT_EQ(TypeOf("x[..., 1:3]").shape, (Shape{3, 2}));
  EXPECT_EQ(TypeOf("x[..., 1]").shape, (Shape{3}));
  EXPECT_EQ(TypeOf("x[0, ..., 1]").shape, Shape{});
  EXPECT_EQ(TypeOf("x[::-1, 5:]").shape, (Shape{3, 0}));
  EXPECT_EQ(TypeOf("x[:][0][1]").shape, Shape{});
  EXPECT_EQ(TypeOf("(x + 1)[0] * 2").shape, (Shape{4}));
  EXPECT_EQ(TypeOf("x[i]").shape, (Shape{5, 4}));
  EXPECT_EQ(ParseExpression("x[x > 0]", Inputs())->steps(1).operation_case(), v1::Step::kCompress);
  EXPECT_EQ(ErrorOf("x[0, 4]"), "column 6: index 4 is outside of [-4, 4), the places of axis 1");
  EXPECT_EQ(ErrorOf("x[-4]"), "column 3: index -4 is outside of [-3, 3), the places of axis 0");
}

TEST(ExpressionTest, NumbersAreArraysWhereTheOperationHasAType) {
  const auto program = ParseExpression("pad(i, before=[1], values=7)", Inputs());
  ASSERT_TRUE(program.ok()) << program.status();
  const v1::MapNode& node = program->steps(0).map().nodes(0);
  EXPECT_EQ(node.data_type(), v1::DATA_TYPE_I64);
  EXPECT_EQ(node.integer(), 7);
  EXPECT_THAT(program->steps(1).inputs(), ElementsAre("i", "1.constant"));
  EXPECT_EQ(TypeOf("take(x, 1)").shape, (Shape{4}));
  EXPECT_EQ(TypeOf("searchsorted(x[0], 0.5)").shape, Shape{});
  EXPECT_EQ(TypeOf("set_slice(x, 0, starts=[1])").shape, (Shape{3, 4}));
  EXPECT_EQ(ErrorOf("pad(i, values=0.5)"), "column 15: 0.5 is no whole number, and the array is of i64");
  EXPECT_EQ(ErrorOf("transpose(3)"), "column 11: expected an array, not a number");
  EXPECT_EQ(ErrorOf("gemm(x, 3)"), "column 9: expected an array, not a number");
}

}  // namespace
}  // namespace warpline::client
