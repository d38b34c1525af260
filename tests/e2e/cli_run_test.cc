// Programs on the command line: the results of their steps, one after the other, on files of any order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "tests/e2e/cli.h"
#include "tests/e2e/ndarray.h"

namespace warpline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Two outputs: the product of a and b, and its sums along the first axis in f64.
constexpr char kProgram[] = R"({
  "steps": [
    {"name": "p", "inputs": ["a", "b"], "gemm": {}},
    {"name": "sums", "inputs": ["p"], "reduce": {"op": "sum", "axes": [0], "outDataType": "f64"}}
  ],
  "outputs": ["sums", "p"]
})";

class CliRunTest : public CliTest {
 protected:
  CliRunTest() {
    Put("a.npy", ToNpy(a_));
    Put("b.npy", ToNpy(b_));
    Put("p.json", kProgram);
  }

  // The only output of an expression over a and b.
  template <typename T>
  Ndarray<T> Compute(const std::string& expression, const std::string& inputs = "a=a.npy b=b.npy") const {
    const Finished finished = Run("warpline run -e '" + expression + "' " + inputs + " -o y.npy");
    EXPECT_EQ(finished.code, 0) << expression << "\n" << finished.err;
    return finished.code == 0 ? FromNpy<T>(Get("y.npy")) : Ndarray<T>();
  }

  void ExpectUsageError(const std::string& words, const std::string& complaint) const {
    const Finished finished = Run("warpline run " + words);
    EXPECT_EQ(finished.code, 2) << words << "\n" << finished.err;
    EXPECT_THAT(finished.err, AllOf(StartsWith("warpline: "), HasSubstr(complaint))) << words;
    EXPECT_FALSE(std::filesystem::exists(Path("y.npy"))) << words;
  }

  const Ndarray<float> a_{{2, 3}, {1, 2, 3, 4, 5, 6}};
  const Ndarray<float> b_{{3, 2}, {1, 0, 0, 1, 1, -1}};
  const Ndarray<float> ab_{{2, 2}, {4, -1, 10, -1}};
};

TEST_F(CliRunTest, RunsAnExpression) {
  EXPECT_EQ(Compute<float>("gemm(a, b)"), ab_);
  EXPECT_EQ(Compute<float>("reduce(transpose(gemm(a, b)), op=sum, axes=[1])"),
            (Ndarray<float>{{2}, {14, -2}}));
  EXPECT_EQ(Compute<float>("p = gemm(a, b, activation=relu); add(p, transpose(p))"),
            (Ndarray<float>{{2, 2}, {8, 10, 10, 0}}));
  EXPECT_EQ(Compute<std::int32_t>("scale(cast(gemm(a, b, c=gemm(a, b)), dtype=i32), factor=-3)"),
            (Ndarray<std::int32_t>{{2, 2}, {-24, 6, -60, 6}}));
}

TEST_F(CliRunTest, TakesIndicesAsNumPyDoes) {
  EXPECT_EQ(Compute<float>("a[1, ::-2] + b[1:, 0]"), (Ndarray<float>{{2}, {6, 5}}));
  EXPECT_EQ(Compute<float>("a[..., -1] * b[0]"), (Ndarray<float>{{2}, {3, 0}}));
  EXPECT_EQ(Compute<float>("a[1, 2]", "a=a.npy"), (Ndarray<float>{{}, {6}}));
  EXPECT_EQ(Compute<float>("a[a > 2]", "a=a.npy"), (Ndarray<float>{{4}, {3, 4, 5, 6}}));
  EXPECT_EQ(Compute<float>("b[argsort(a[1] % 3)]"), (Ndarray<float>{{3, 2}, {1, -1, 1, 0, 0, 1}}));
}

TEST_F(CliRunTest, ComputesFunctionsOfSeveralSteps) {
  EXPECT_EQ(Compute<float>("median(a)", "a=a.npy"), (Ndarray<float>{{}, {3.5}}));
  EXPECT_EQ(Compute<float>("median(a, axis=1, keepdims=true)", "a=a.npy"), (Ndarray<float>{{2, 1}, {2, 5}}));
  EXPECT_EQ(Compute<float>("quantile(a, q=0.3)", "a=a.npy"), (Ndarray<float>{{}, {2.5}}));
  EXPECT_EQ(Compute<double>("quantile(cast(a, dtype=i32), q=1, axis=0)", "a=a.npy"),
            (Ndarray<double>{{3}, {4, 5, 6}}));
  EXPECT_EQ(Compute<float>("cumsum(a)", "a=a.npy"), (Ndarray<float>{{6}, {1, 3, 6, 10, 15, 21}}));
  EXPECT_EQ(Compute<float>("cumprod(a, axis=0)", "a=a.npy"), (Ndarray<float>{{2, 3}, {1, 2, 3, 4, 10, 18}}));
  EXPECT_EQ(Compute<float>("unique(b)", "b=b.npy"), (Ndarray<float>{{3}, {-1, 0, 1}}));
  EXPECT_EQ(Compute<std::int64_t>("nonzero(b, axis=1)", "b=b.npy"),
            (Ndarray<std::int64_t>{{4}, {0, 1, 0, 1}}));
  EXPECT_EQ(Compute<float>("unique(b / 0 * 0)", "b=b.npy").shape, (Sizes{1}));
  EXPECT_TRUE(std::isnan(Compute<float>("median(b / 0 * 0)", "b=b.npy").values[0]));
}

TEST_F(CliRunTest, RefusesIndicesAndFunctionsThatDoNotFit) {
  ExpectUsageError("-e 'a[2]' a=a.npy -o y.npy",
                   "--expr: column 3: index 2 is outside of [-2, 2), the places of axis 0");
  ExpectUsageError("-e 'median(y)' a=a.npy -o y.npy",
                   "--expr: column 1: median needs the type and shape of the input y, which is not given");
}

TEST_F(CliRunTest, TakesNumbersWhereAnOperationReadsAnArray) {
  EXPECT_EQ(Compute<float>("pad(a, before=[1], values=7)", "a=a.npy"),
            (Ndarray<float>{{3, 3}, {7, 7, 7, 1, 2, 3, 4, 5, 6}}));
  EXPECT_EQ(Compute<std::int64_t>("searchsorted(a[0], 2.5)", "a=a.npy"), (Ndarray<std::int64_t>{{}, {2}}));
  EXPECT_EQ(Compute<float>("take(a, -1, axis=1)", "a=a.npy"), (Ndarray<float>{{2}, {3, 6}}));
}

TEST_F(CliRunTest, RunsAProgramFromAFileAndFromStandardInput) {
  const Ndarray<double> sums{{2}, {14, -2}};
  Finished finished = Run("warpline run p.json a=a.npy b=b.npy -o p=p.npy -o sums=s.npy");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out + finished.err, IsEmpty());
  EXPECT_EQ(FromNpy<float>(Get("p.npy")), ab_);
  EXPECT_EQ(FromNpy<double>(Get("s.npy")), sums);
  finished = Run("warpline run - b=b.npy a=a.npy -o p=p2.npy -o sums=- <p.json");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(FromNpy<double>(finished.out), sums);
  EXPECT_EQ(Get("p2.npy"), Get("p.npy"));
}

TEST_F(CliRunTest, HonoursFortranOrderOfEveryInput) {
  for (int which = 0; which < 4; ++which) {
    Put("a.npy", ToNpy(a_, (which & 1) != 0));
    Put("b.npy", ToNpy(b_, (which & 2) != 0));
    EXPECT_EQ(Compute<float>("gemm(a, b)"), ab_) << which;
    EXPECT_EQ(Compute<std::int64_t>("reduce(gemm(a, b), op=argmax)"), (Ndarray<std::int64_t>{{}, {2}}))
        << which;
  }
  const auto x = Numbers<std::int32_t>({2, 3, 4}, 1);
  Put("x.npy", ToNpy(x, true));
  const Finished finished = Run("warpline run -e 'add(x, x)' x=x.npy -o y.npy");
  ASSERT_EQ(finished.code, 0) << finished.err;
  auto doubled = x;
  for (std::int32_t& value : doubled.values) value *= 2;
  EXPECT_EQ(FromNpy<std::int32_t>(Get("y.npy")), doubled);
}

TEST_F(CliRunTest, HasRoomForEveryStepWhateverTheOrder) {
  Put("a.npy", ToNpy(a_, true));
  std::string expression = "a";
  for (int i = 0; i < 64; ++i) expression = "transpose(" + expression + ")";
  Finished finished = Run("warpline run -e '" + expression + "' a=a.npy -o y.npy");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(FromNpy<float>(Get("y.npy")), a_);
  finished = Run("warpline run -e 'gemm(a, a)' a=a.npy -o y2.npy");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, HasSubstr("program.steps[0]"));
}

TEST_F(CliRunTest, ReturnsTheStepsOfAnExpressionThatAreNamed) {
  const std::string run = "warpline run a=a.npy b=b.npy -e 'p = gemm(a, b); reduce(p, op=sum, axes=[0])' ";
  const Ndarray<float> sums{{2}, {14, -2}};
  Finished finished = Run(run + "-o 2.reduce=s.npy -o p=- --timings --json");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(FromNpy<float>(finished.out), ab_);
  EXPECT_EQ(FromNpy<float>(Get("s.npy")), sums);
  EXPECT_THAT(finished.err, HasSubstr(R"("outputs":[{"name":"2.reduce",)"));
  // The server's to say.
  finished = Run(run + "-o p=y.npy");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, StartsWith("warpline: INVALID_ARGUMENT: "));
  ExpectUsageError(run.substr(13) + "-o p=y.npy -o s.npy", "s.npy: expected -o NAME=OUT.npy");
  ExpectUsageError(run.substr(13) + "-o p=y.npy -o p=p.npy", "the output p is given twice");
}

TEST_F(CliRunTest, ShowsAProgramThatRuns) {
  const std::string help = Run("warpline run --help").out;
  const std::size_t start = help.find("{\"steps\""), end = help.find("]}\n\n", start);
  ASSERT_NE(end, std::string::npos) << help;
  Put("shown.json", help.substr(start, end + 2 - start));
  Put("c.npy", ToNpy(Ndarray<float>{{2, 2}, {1, 0, 0, 0}}));
  Put("v.npy", ToNpy(Ndarray<float>{{2}, {0, 1}}));
  const Finished finished =
      Run("warpline run shown.json a=a.npy b=b.npy c=c.npy v=v.npy -o d=y.npy -o sums=s.npy");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(FromNpy<float>(Get("y.npy")), (Ndarray<float>{{2, 2}, {3, 0.5, 5, 0.5}}));
  EXPECT_EQ(FromNpy<float>(Get("s.npy")), (Ndarray<float>{{2}, {8, 1}}));
}

TEST_F(CliRunTest, LosesNoOutput) {
  const std::string run = "p.json a=a.npy b=b.npy ";
  ExpectUsageError(run + "-o p=y.npy -o sums=y.npy", "-o y.npy: another result goes there");
  ExpectUsageError(run + "-o p=y.npy -o sums=./y.npy", "another result goes there, as ");
  ExpectUsageError(run + "-o p=- -o sums=-", "-o -: another result goes there");
  ExpectUsageError(run + "-o p:nonsense=y.npy -o sums=s.npy", "p:nonsense=y.npy: an output has no type");
}

TEST_F(CliRunTest, TakesTheTypeOfARawFileFromItsName) {
  Put("w.npy", ToNpy(Ndarray<std::uint16_t>{{2}, {0x3f80, 0xc000}}));  // bf16 1 and -2
  Finished finished = Run("warpline run -e 'cast(w, dtype=f32)' w:bf16=w.npy -o y.npy");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(FromNpy<float>(Get("y.npy")), (Ndarray<float>{{2}, {1, -2}}));
  std::filesystem::remove(Path("y.npy"));
  ExpectUsageError("-e 'cast(w, dtype=f32)' w=w.npy -o y.npy", "|V2' is raw memory: say what it is");
  ExpectUsageError("-e 'cast(w, dtype=f32)' w:bfloat=w.npy -o y.npy", "w:bfloat: there is no such type");
}

TEST_F(CliRunTest, TellsWhatRan) {
  const Finished finished =
      Run("warpline run p.json a=a.npy b=b.npy -o p=p.npy -o sums=s.npy --timings --json");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out,
              AllOf(StartsWith(R"({"op":"run","outputs":[{"name":"sums","dtype":"f64","shape":[2]},)"),
                    HasSubstr(R"("variants":[")")));
}

TEST_F(CliRunTest, RefusesFilesThatDoNotFitTheProgram) {
  ExpectUsageError("-e 'gemm(a, b)' a=a.npy -o y.npy", "the program's input b has no file");
  ExpectUsageError("-e 'gemm(a, b)' a=a.npy b=b.npy c=a.npy -o y.npy",
                   "the program has no input c; it has a, b");
  ExpectUsageError("-e 'gemm(a, b)' a=a.npy b=b.npy a=b.npy -o y.npy", "the input a is given twice");
  ExpectUsageError("-e 'gemm(a, b)' a.npy b=b.npy -o y.npy", "a.npy: expected NAME=IN.npy");
  ExpectUsageError("-e 'gemm(a, b)' a=a.npy b=missing.npy -o y.npy", "missing.npy: cannot open");
  ExpectUsageError("-e 'gemm(a, b)' a=a.npy b=b.npy", "the program's output 1.gemm has no file");
  ExpectUsageError("-e 'gemm(a, b)' a=a.npy b=b.npy -o q=y.npy",
                   "q=y.npy: the expression has no step q; it has 1.gemm");
  ExpectUsageError("p.json a=a.npy b=b.npy -o q=y.npy", "the program has no output q; it has sums, p");
  ExpectUsageError("p.json a=a.npy b=b.npy -o y.npy", "y.npy: expected -o NAME=OUT.npy");
  ExpectUsageError("p.json a=a.npy b=b.npy -o p=y.npy", "the program's output sums has no file");
  ExpectUsageError("- a=- b=b.npy -o p=y.npy -o sums=s.npy <p.json", "standard input cannot be both");
}

TEST_F(CliRunTest, RefusesWhatIsNoProgram) {
  ExpectUsageError("-o y.npy", "the program is missing");
  ExpectUsageError("missing.json -o y.npy", "missing.json: cannot open");
  ExpectUsageError("a.npy a=a.npy -o y.npy", "a.npy: not a warpline.v1.Program in JSON");
  ExpectUsageError("/dev/zero -o y.npy", "/dev/zero: a program has at most 1048576 bytes");
  ExpectUsageError("-e 'gemm(a b)' a=a.npy -o y.npy", "--expr: column 8: expected ',' or ')', found 'b)'");
}

TEST_F(CliRunTest, LeavesWhatMakesNoSenseToTheServer) {
  const Finished finished = Run("warpline run -e 'gemm(a, a)' a=a.npy -o y.npy");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, AllOf(StartsWith("warpline: INVALID_ARGUMENT: "), HasSubstr("program.steps[0]"),
                                  Not(HasSubstr("--help"))));
  EXPECT_FALSE(std::filesystem::exists(Path("y.npy")));
}

TEST_F(CliRunTest, TakesScansAndSorts) {
  const auto values = [&](const std::string& expression) {
    // Both inputs must be read.
    return Compute<float>("y = " + expression + "; y + 0 * sum(a) * sum(b)").values;
  };
  EXPECT_EQ(values("scan(a, op=sum)"), (std::vector<float>{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(values("scan(a, op=sum, axis=0)"), (std::vector<float>{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(values("sort(b, axis=0, descending=true)"), (std::vector<float>{1, 1, 1, 0, 0, -1}));
  EXPECT_EQ(values("sort(b, descending=true)"), (std::vector<float>{1, 0, 1, 0, 1, -1}));
  EXPECT_EQ(values("take_along_axis(a + topk(a, k=1, indices=i), i, axis=1)"), (std::vector<float>{6, 12}));
  EXPECT_EQ(values("take(a, argsort(-sum(a, axis=1)))"), (std::vector<float>{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(values("set_slice(a, sum(a, axis=1, keepdims=true), starts=[1], ends=[2], axes=[1])"),
            (std::vector<float>{1, 6, 3, 4, 15, 6}));
}

TEST_F(CliRunTest, PlacesAreOutputsToo) {
  const auto values = [&](const std::string& expression) {
    return Compute<std::int64_t>("u = a + 0 * sum(b); " + expression).values;
  };
  EXPECT_EQ(values("t = topk(u, k=1, indices=p); p"), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(values("t = sort(u, axis=1, descending=true, indices=p); p"),
            (std::vector<std::int64_t>{2, 1, 0, 2, 1, 0}));
}

TEST_F(CliRunTest, MovesRepeatsAndPads) {
  const auto values = [&](const std::string& expression) {
    return Compute<float>("y = " + expression + "; y + 0 * sum(a) * sum(b)").values;
  };
  EXPECT_EQ(values("roll(a, shifts=[1])"), (std::vector<float>{6, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values("roll(a, shifts=[-1, 1], axes=[1, 0])"), (std::vector<float>{5, 6, 4, 2, 3, 1}));
  EXPECT_EQ(values("tile(sum(a, axis=0), counts=[2, 1])"), (std::vector<float>{5, 7, 9, 5, 7, 9}));
  EXPECT_EQ(values("slice(a, starts=[1], axes=[1])"), (std::vector<float>{2, 3, 5, 6}));
  EXPECT_EQ(values("slice(a, steps=[-1, -2])"), (std::vector<float>{6, 4, 3, 1}));
  EXPECT_EQ(values("repeat(sum(a, axis=1), count=2)"), (std::vector<float>{6, 6, 15, 15}));
  EXPECT_EQ(values("pad(sum(a, axis=1), before=[1], after=[2])"), (std::vector<float>{0, 6, 15, 0, 0}));
  EXPECT_EQ(values("pad(a, before=[1], after=[0], axes=[-1], values=sum(a, axis=1, keepdims=true))"),
            (std::vector<float>{6, 1, 2, 3, 15, 4, 5, 6}));
}

}  // namespace
}  // namespace warpline
