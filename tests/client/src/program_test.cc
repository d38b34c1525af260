#include "warpline/program.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace warpline::client {
namespace {

using testing::HasSubstr;

void ExpectProgram(const std::string& expression, const std::string& text) {
  const auto program = ParseExpression(expression);
  ASSERT_TRUE(program.ok()) << expression << "\n" << program.status();
  v1::Program wanted;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &wanted));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*program, wanted)) << expression << "\n"
                                                                                    << program->DebugString();
}

std::string ErrorOf(const std::string& expression) {
  const auto program = ParseExpression(expression);
  EXPECT_TRUE(absl::IsInvalidArgument(program.status())) << expression;
  return std::string(program.status().message());
}

TEST(ParseExpressionTest, AVariantsConfigurationHasAColon) {
  ExpectProgram("gemm(a, b, variant=cublas:5)", R"(
    steps { name: "1.gemm" inputs: "a" inputs: "b" variant: "cublas:5" gemm {} }
    outputs: "1.gemm")");
}

TEST(ExpressionTest, AddsAStepForEachCallFromTheInnermostOn) {
  ExpectProgram("reduce(transpose(gemm(a, b)), op=sum, axes=[1])", R"(
    steps { name: "1.gemm" inputs: "a" inputs: "b" gemm {} }
    steps { name: "2.transpose" inputs: "1.gemm" transpose {} }
    steps { name: "3.reduce" inputs: "2.transpose" reduce { op: REDUCE_OP_SUM axes: 1 } }
    outputs: "3.reduce")");
}

TEST(ExpressionTest, NeighbouringElementwiseOperationsAreOneMap) {
  ExpectProgram("where(isnan(x), y, exp(x), variant=interpreter)", R"(
    steps { name: "1.where" inputs: ["x", "y"] variant: "interpreter" map {
      nodes { op: MAP_OP_ISNAN operands: 0 }
      nodes { op: MAP_OP_EXP operands: 0 }
      nodes { op: MAP_OP_WHERE operands: [2, 1, 3] } } }
    outputs: "1.where")");
  ExpectProgram("e = exp(x); e + transpose(e)", R"(
    steps { name: "e" inputs: "x" map { nodes { op: MAP_OP_EXP operands: 0 } } }
    steps { name: "2.transpose" inputs: "e" transpose {} }
    steps { name: "3.add" inputs: ["e", "2.transpose"] map { nodes { op: MAP_OP_ADD operands: [0, 1] } } }
    outputs: "3.add")");
  EXPECT_EQ(ErrorOf("exp(x, y)"), "column 1: exp has 2 operands instead of 1");
  EXPECT_EQ(ErrorOf("exp(x, nodes=1)"), "column 8: exp has no argument nodes: expected variant");
  EXPECT_THAT(ErrorOf("constant(x)"), HasSubstr("there is no operation constant"));
  EXPECT_THAT(ErrorOf("map(x)"), HasSubstr("there is no operation map"));
}

// The tree of an expression, with brackets around each operation.
std::string Bracketed(const std::string& expression) {
  const auto program = ParseExpression(expression);
  EXPECT_TRUE(program.ok()) << expression << ": " << program.status();
  if (!program.ok()) return "";
  const v1::Step& step = program->steps(program->steps_size() - 1);
  std::vector<std::string> values(step.inputs().begin(), step.inputs().end());
  for (const v1::MapNode& node : step.map().nodes()) {
    if (node.op() == v1::MAP_OP_CONSTANT) {
      values.push_back(node.integer() != 0 ? absl::StrCat(node.integer()) : absl::StrCat(node.real()));
      continue;
    }
    std::vector<std::string> operands;
    for (const int operand : node.operands()) operands.push_back(values[static_cast<std::size_t>(operand)]);
    values.push_back(absl::StrCat(absl::AsciiStrToLower(v1::MapOp_Name(node.op())).substr(7), "(",
                                  absl::StrJoin(operands, ","), ")"));
  }
  return values.back();
}

TEST(ExpressionTest, OperatorsBindAsInPython) {
  EXPECT_EQ(Bracketed("a - b - c"), "subtract(subtract(a,b),c)");
  EXPECT_EQ(Bracketed("a + b * c / d // e % f"),
            "add(a,remainder(floor_divide(divide(multiply(b,c),d),e),f))");
  EXPECT_EQ(Bracketed("a ** b ** -c"), "pow(a,pow(b,negative(c)))");
  EXPECT_EQ(Bracketed("-a ** 2"), "negative(pow(a,2))");
  EXPECT_EQ(Bracketed("-a * +b - ~c"), "subtract(multiply(negative(a),b),bitwise_invert(c))");
  EXPECT_EQ(Bracketed("a | b ^ c & d << e + f"),
            "bitwise_or(a,bitwise_xor(b,bitwise_and(c,bitwise_left_shift(d,add(e,f)))))");
  EXPECT_EQ(Bracketed("a + b < c"), "less(add(a,b),c)");
  EXPECT_EQ(Bracketed("(a >= b) & (c == d)"), "bitwise_and(greater_equal(a,b),equal(c,d))");
  EXPECT_EQ(Bracketed("exp(-x)*y"), "multiply(exp(negative(x)),y)");
  EXPECT_EQ(Bracketed("x-1"), "subtract(x,1)");
  EXPECT_EQ(Bracketed("x * -1.5e-3"), "multiply(x,-0.0015)");
  EXPECT_EQ(Bracketed("clip(x, -1, .5)"), "clip(x,-1,0.5)");
  EXPECT_EQ(Bracketed("where(m, x, -inf)"), "where(m,x,-inf)");
  EXPECT_EQ(Bracketed("(1 / 4) * x + 2 ** 3 * 2;"), "add(multiply(0.25,x),16)");
}

TEST(ExpressionTest, TheEndOfALineEndsAnExpressionOutsideOfBrackets) {
  const auto steps = [](const char* text) { return ParseExpression(text)->steps_size(); };
  EXPECT_EQ(steps("y = x * 2\n-y"), 2);
  EXPECT_EQ(steps("y = a + x\n(y * 2)"), 2);
  EXPECT_EQ(steps("y = (x\n - 1) * exp(\n x)"), 1);
  EXPECT_EQ(steps("y = x *\n 2"), 1);
  EXPECT_THAT(ErrorOf("y = x + 1\n ** 2"), HasSubstr("expected an operation or a name"));
}

TEST(ExpressionTest, ReductionsAndProductsAreOperandsToo) {
  ExpectProgram("(x - mean(x, axis=0)) / std(x, axis=[0], ddof=1)", R"(
    steps { name: "1.mean" inputs: "x" reduce { op: REDUCE_OP_MEAN axes: 0 } }
    steps { name: "2.std" inputs: "x" reduce { op: REDUCE_OP_STD axes: 0 ddof: 1 } }
    steps { name: "3.divide" inputs: ["x", "1.mean", "2.std"] map {
      nodes { op: MAP_OP_SUBTRACT operands: [0, 1] } nodes { op: MAP_OP_DIVIDE operands: [3, 2] } } }
    outputs: "3.divide")");
  ExpectProgram("a @ b + c", R"(
    steps { name: "1.gemm" inputs: ["a", "b"] gemm {} }
    steps { name: "2.add" inputs: ["1.gemm", "c"] map { nodes { op: MAP_OP_ADD operands: [0, 1] } } }
    outputs: "2.add")");
}

TEST(ExpressionTest, ExpressionsThatAreTooLargeForOneMapAreSeveral) {
  std::string sum = "x";
  for (int i = 0; i < 400; ++i) absl::StrAppend(&sum, " + x");
  EXPECT_EQ(ParseExpression(sum)->steps_size(), 2);
  std::string many = "x0";
  for (int i = 1; i < 40; ++i) absl::StrAppend(&many, " + x", i);
  EXPECT_EQ(ParseExpression(many)->steps_size(), 2);
}

TEST(ExpressionTest, KnowsEveryOperationAndItsFields) {
  ExpectProgram("transpose(x, perm=[1, 0, 2], variant=naive)", R"(
    steps { name: "1.transpose" inputs: "x" variant: "naive" transpose { perm: [1, 0, 2] } }
    outputs: "1.transpose")");
  ExpectProgram(
      "gemm(a, b, trans_a=true, trans_b=false, alpha=-2.5, beta=1e-3, precision=tf32, "
      "activation=gelu, out_dtype=f32, bias=v, c=m)",
      R"(
    steps { name: "1.gemm" inputs: ["a", "b", "m", "v"] gemm {
      trans_a: true alpha: -2.5 beta: 0.001 precision: PRECISION_TF32 has_bias: true
      activation: ACTIVATION_GELU out_data_type: DATA_TYPE_F32 } }
    outputs: "1.gemm")");
  ExpectProgram("reduce(x, op=count_nonzero, axes=-1, keepdims=true)", R"(
    steps { name: "1.reduce" inputs: "x" reduce { op: REDUCE_OP_COUNT_NONZERO axes: -1 keepdims: true } }
    outputs: "1.reduce")");
  ExpectProgram("reduce(x, op=var, ddof=1, out_data_type=f64, axes=[])", R"(
    steps { name: "1.reduce" inputs: "x" reduce { op: REDUCE_OP_VAR ddof: 1 out_data_type: DATA_TYPE_F64 } }
    outputs: "1.reduce")");
  ExpectProgram("add(cast(x, dtype=bf16), scale(y, factor=.5))", R"(
    steps { name: "1.cast" inputs: "x" cast { data_type: DATA_TYPE_BF16 } }
    steps { name: "2.scale" inputs: "y" scale { factor: 0.5 } }
    steps { name: "3.add" inputs: ["1.cast", "2.scale"] add {} }
    outputs: "3.add")");
}

TEST(ExpressionTest, TakesBetaAsOneIfThereIsAC) {
  ExpectProgram("gemm(a, b, c=gemm(b, a))", R"(
    steps { name: "1.gemm" inputs: ["b", "a"] gemm {} }
    steps { name: "2.gemm" inputs: ["a", "b", "1.gemm"] gemm { beta: 1 } }
    outputs: "2.gemm")");
  EXPECT_EQ(ErrorOf("gemm(a, b, c=m, beta=0)"), "column 1: with beta=0 there is no use for c");
}

TEST(ExpressionTest, LetsStepsBeNamedAndReadAgain) {
  ExpectProgram("p = gemm(a, b); q=transpose( p ) ;result = add(p, q)", R"(
    steps { name: "p" inputs: ["a", "b"] gemm {} }
    steps { name: "q" inputs: "p" transpose {} }
    steps { name: "result" inputs: ["p", "q"] add {} }
    outputs: "result")");
}

TEST(ExpressionTest, TakesAnyNumber) {
  const auto factor = [](const std::string& text) {
    const auto program = ParseExpression("scale(x, factor=" + text + ")");
    EXPECT_TRUE(program.ok()) << program.status();
    return program.ok() ? program->steps(0).scale().factor() : 0;
  };
  EXPECT_EQ(factor("1e+3"), 1000);
  EXPECT_EQ(factor("-inf"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(factor("0.1"), 0.1);
}

TEST(ExpressionTest, RoundsNoNumberWithoutAWord) {
  EXPECT_TRUE(ParseExpression("scale(x, factor=-9007199254740992)").ok());
  EXPECT_TRUE(ParseExpression("scale(x, factor=9007199254740993.0)").ok());
  EXPECT_EQ(ErrorOf("scale(x, factor=9007199254740993)"),
            "column 17: 9007199254740993 may not be exact in f64, as it is above 2^53: write "
            "9007199254740993.0 if it may be rounded");
  for (const char* number : {"-9007199254740993", "+9007199254740993", "100000000000000000000"}) {
    EXPECT_THAT(ErrorOf(std::string("gemm(a, b, alpha=") + number + ")"), HasSubstr("may not be exact"));
  }
  EXPECT_EQ(ErrorOf("scale(x, factor=-1e400)"),
            "column 17: -1e400 is beyond the greatest number: write inf if you mean that");
  EXPECT_THAT(ErrorOf("scale(x, factor=1" + std::string(400, '0') + ")"), HasSubstr("beyond the greatest"));
  EXPECT_TRUE(ParseExpression("scale(x, factor=+Infinity)").ok());
}

TEST(ExpressionTest, NeedsWhatHasNoDefault) {
  EXPECT_EQ(ErrorOf("add(x, scale(x))"), "column 8: scale lacks factor, as in factor=0.5");
  EXPECT_EQ(ErrorOf("reduce(x, axes=[0])"), "column 1: reduce lacks op, as in op=sum");
  EXPECT_EQ(ErrorOf("cast(x)"), "column 1: cast lacks dtype, as in dtype=f32");
  EXPECT_EQ(ErrorOf("transpose(x, variant=)"), "column 22: expected a variant's name, found ')'");
  EXPECT_TRUE(ParseExpression("scale(x, factor=0)").ok());
}

TEST(ExpressionTest, TakesWordsAsPythonWritesThem) {
  ExpectProgram("reduce(x, op=\"sum\", keepdims=True, out_dtype='f64', variant=\"naive\")", R"(
    steps { name: "1.reduce" inputs: "x" variant: "naive"
            reduce { op: REDUCE_OP_SUM keepdims: true out_data_type: DATA_TYPE_F64 } }
    outputs: "1.reduce")");
  ExpectProgram("reduce(x, op=REDUCE_OP_SUM, keepdims=False)", R"(
    steps { name: "1.reduce" inputs: "x" reduce { op: REDUCE_OP_SUM } }
    outputs: "1.reduce")");
  EXPECT_THAT(ErrorOf("reduce(x, op=\"sum)"), HasSubstr("logsumexp, found '\\\"sum)'"));
  EXPECT_THAT(ErrorOf("transpose(x, variant=\"\")"), HasSubstr("column 22: expected a variant's name"));
}

TEST(ExpressionTest, TakesTheEndOfALineAsASeparator) {
  const std::string program = R"(
    steps { name: "p" inputs: ["a", "b"] gemm {} }
    steps { name: "2.add" inputs: ["p", "p"] add {} }
    outputs: "2.add")";
  ExpectProgram("p = gemm(a, b)\nadd(p, p)", program);
  ExpectProgram("\n p = gemm(a,\n  b) \r\n\n add(p, p)\n", program);
  ExpectProgram("p = gemm(a, b);\nadd(p, p)", program);
  ExpectProgram("p = gemm(a, b)\n; add(p, p)", program);
  EXPECT_EQ(ErrorOf("p = gemm(a, b) add(p, p)"),
            "column 16: expected an operator or the end, found 'add(p, p)'");
  EXPECT_EQ(ErrorOf("gemm(a, b)\nadd(p, p)"), "column 1: expected NAME = before all but the last operation");
}

TEST(ExpressionTest, GivesNoStepTheNameOfAnInput) {
  EXPECT_EQ(ErrorOf("a = transpose(a)"),
            "column 1: a was read as an input before: name the result otherwise");
  EXPECT_EQ(ErrorOf("p = gemm(x, y, c=q); q = add(p, p); add(q, p)"),
            "column 22: q was read as an input before: name the result otherwise");
  EXPECT_TRUE(ParseExpression("p = transpose(a); q = transpose(p); add(p, q)").ok());
}

TEST(ExpressionTest, SaysWhereItIsWrongAndWhatWasExpected) {
  EXPECT_EQ(ErrorOf(""), "column 1: expected an operation or a name, found the end");
  EXPECT_EQ(ErrorOf("x"), "column 1: expected an operation: there is nothing to compute");
  EXPECT_EQ(ErrorOf("add(x y)"), "column 7: expected ',' or ')', found 'y)'");
  EXPECT_EQ(ErrorOf("add(x, y"), "column 9: expected ',' or ')', found the end");
  EXPECT_EQ(ErrorOf("add(x, y))"), "column 10: expected an operator or the end, found ')'");
  EXPECT_EQ(ErrorOf("add(x,)"), "column 7: expected an operation or a name, found ')'");
  EXPECT_EQ(ErrorOf("transpose(3)"), "column 11: expected an array, not a number");
  EXPECT_EQ(ErrorOf("1 + 2"), "column 1: expected an array, not a number");
  EXPECT_EQ(ErrorOf("x + 1 < 2 | 1"),
            "column 11: expected an array among the operands: bitwise_or of numbers alone is not computed");
  EXPECT_EQ(ErrorOf("x[0.5]"), "column 3: expected a whole number as an index");
  EXPECT_EQ(ErrorOf("x[::0]"), "column 4: the step of a range is not 0");
  EXPECT_EQ(ErrorOf("x[1:y]"), "column 5: expected a whole number, as a bound of a range");
  EXPECT_EQ(ErrorOf("x[..., 1:, ...]"), "column 2: an index has at most one ...");
  EXPECT_EQ(ErrorOf("x[1:2"), "column 6: expected ',' or ']', found the end");
  EXPECT_EQ(ErrorOf("x[y, 1:]"),
            "column 3: an array is an index only alone, as in x[mask]: take(x, i, axis=1) takes places "
            "along an axis");
  EXPECT_EQ(ErrorOf("cumsum(x, op=sum)"), "column 11: cumsum has no argument op: expected axis");
  EXPECT_EQ(ErrorOf("cumsum(x, y)"), "column 11: cumsum has 1 operand, and then FIELD=VALUE");
  EXPECT_EQ(ErrorOf("x.T"), "column 1: there is no attribute T: transpose(x) swaps the last two axes");
  EXPECT_EQ(ErrorOf("a @ b.T"), "column 5: there is no attribute T: transpose(b) swaps the last two axes");
  EXPECT_EQ(ErrorOf("x y"), "column 3: expected an operator or the end, found 'y'");
  EXPECT_EQ(ErrorOf("not x"), "column 1: not is no operator here: &, | and ~ work element by element");
  EXPECT_EQ(ErrorOf("x * 1e400"),
            "column 5: 1e400 is beyond the greatest number: write inf if you mean that");
  EXPECT_EQ(ErrorOf("x + "), "column 5: expected an operation or a name, found the end");
  EXPECT_EQ(ErrorOf("(x + y"), "column 7: expected ')', found the end");
  EXPECT_EQ(ErrorOf("0 < x < 1"), "column 7: comparisons do not chain: use brackets and &");
  EXPECT_EQ(ErrorOf("x + 9223372036854775808"),
            "column 5: 9223372036854775808 is above 2^63 - 1, the greatest whole number");
  EXPECT_EQ(ErrorOf("mean(x, op=sum)"),
            "column 9: mean has no argument op: expected axes, keepdims, out_dtype, ddof, variant");
  // If the id were cut, other digits would be shown than anywhere else.
  EXPECT_EQ(ErrorOf("add(@410e9bc9-8015160a8eb8167f32327b3b944e7266, b)"),
            "column 5: expected an operation or a name, found '@...944e7266, b)'");
  EXPECT_EQ(ErrorOf(" invert(x)"),
            "column 2: there is no operation invert: expected transpose, gemm, reduce, cast, scale, add, "
            "reshape, slice, broadcast_to, diagonal, concat, take, "
            "take_along_axis, put_along_axis, scan, sort, argsort, topk, searchsorted, set_slice, compress, "
            "roll, tile, repeat, pad, median, quantile, cumsum, cumprod, nonzero, unique, a reduction such "
            "as mean, "
            "or an elementwise one such as exp");
  EXPECT_EQ(ErrorOf("name(x)").substr(0, 33), "column 1: there is no operation n");
  EXPECT_EQ(ErrorOf("gemm(a)"), "column 1: gemm has 1 operands instead of 2");
  EXPECT_EQ(ErrorOf("scale(x, factor=two)"), "column 17: expected a number, found 'two)'");
  EXPECT_EQ(ErrorOf("transpose(x, perm=[0, 1)"), "column 24: expected ',' or ']', found ')'");
  EXPECT_EQ(ErrorOf("transpose(x, perm=[0.5])"), "column 20: expected a whole number, found '0.5])'");
  EXPECT_EQ(ErrorOf("reduce(x, keepdims=1)"), "column 20: expected true or false, found '1)'");
  EXPECT_THAT(ErrorOf("reduce(x, op=median)"), HasSubstr("column 14: expected sum, prod, min, "));
  EXPECT_THAT(ErrorOf("reduce(x, op=median)"), HasSubstr("logsumexp, found 'median)'"));
  EXPECT_EQ(ErrorOf("cast(x, factor=1)"), "column 9: cast has no argument factor: expected dtype, variant");
  EXPECT_EQ(ErrorOf("cast(a, to=f32)"), "column 9: cast has no argument to: expected dtype, variant");
  EXPECT_THAT(ErrorOf("gemm(a, b, has_bias=true)"), HasSubstr("no argument has_bias"));
  EXPECT_EQ(ErrorOf("reduce(op=sum, x)"),
            "column 16: expected FIELD=VALUE, as operands come first, found 'x)'");
  EXPECT_EQ(ErrorOf("reduce(x, op=sum, op=max)"), "column 19: op is given twice");
  EXPECT_EQ(ErrorOf("add(x, y); add(x, y)"), "column 1: expected NAME = before all but the last operation");
  EXPECT_EQ(ErrorOf("p = x; add(p, p)"), "column 5: expected an operation: there is nothing to compute");
  EXPECT_EQ(ErrorOf("add(x, \x1b[2J)"), "column 8: expected an operation or a name, found '\\x1b[2J)'");
}

TEST(ProgramTest, FurtherResultsAreNamedByArguments) {
  const auto program = ParseExpression("v = topk(x, k=2, indices=i); take(w, i, axis=1)");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->steps(0).topk().indices(), "i");
  EXPECT_EQ(program->steps(1).inputs(1), "i");
  const auto sorted = ParseExpression("searchsorted(x, y, right=true, sorter=argsort(x))");
  ASSERT_TRUE(sorted.ok()) << sorted.status();
  EXPECT_TRUE(sorted->steps(1).searchsorted().has_sorter());
  EXPECT_EQ(sorted->steps(1).inputs(2), "1.argsort");
  EXPECT_EQ(ErrorOf("scan(x)"), "column 1: scan lacks op, as in op=sum");
  const auto along = ParseExpression("scan(sort(argsort(x, axis=0)), op=sum)");
  ASSERT_TRUE(along.ok()) << along.status();
  EXPECT_EQ(along->steps(0).argsort().axis(), 0);
  EXPECT_EQ(along->steps(1).sort().axis(), -1);
  EXPECT_EQ(along->steps(2).scan().axis(), -1);
  EXPECT_EQ(ErrorOf("topk(x)"), "column 1: topk lacks k, as in k=10");
  EXPECT_EQ(ErrorOf("sort(x, indices=x)"),
            "column 17: x was read as an input before: name the result otherwise");
  EXPECT_EQ(ErrorOf("sort(x, indices=3)"), "column 17: expected a name, found '3)'");
}

std::string Nested(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += "transpose(";
  return text + "x" + std::string(static_cast<std::size_t>(depth), ')');
}

TEST(ExpressionTest, BoundsItsDepthAndItsSteps) {
  EXPECT_TRUE(ParseExpression(Nested(kMaxSteps)).ok());
  EXPECT_EQ(ErrorOf(Nested(kMaxSteps + 1)), "column 2561: more than 256 operations in one another");
  EXPECT_THAT(ErrorOf(Nested(1'000'000)), HasSubstr("more than 256 operations in one another"));
  EXPECT_THAT(ErrorOf("add(" + Nested(140) + ", " + Nested(140) + ")"),
              HasSubstr(": more than 256 operations"));
}

TEST(ExpressionTest, TakesDamagedTextWithoutHarm) {
  const std::string good =
      "p = gemm(a, b, bias=v, activation=relu); reduce(add(p, transpose(p)), op=std, axes=[0])";
  std::mt19937 random(1);
  for (int round = 0; round < 5000; ++round) {
    std::string text = good;
    for (int i = 0; i < 3; ++i) text[random() % text.size()] = static_cast<char>(random());
    (void)ParseExpression(text);
    (void)ParseExpression(good.substr(random() % good.size()));
  }
}

}  // namespace
}  // namespace warpline::client
