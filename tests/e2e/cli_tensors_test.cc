// Tensors on the server, through the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/cli.h"
#include "tests/e2e/ndarray.h"

namespace warpline {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

class CliTensorsTest : public CliTest {
 protected:
  explicit CliTensorsTest(std::vector<std::string> flags = {}) : CliTest(std::move(flags)) {
    Put("x.npy", ToNpy(x_));
    Put("b.npy", ToNpy(b_));
  }

  // Returns the one line that the script prints. Expects it to end with 0.
  std::string Line(const std::string& script) const {
    const Finished finished = Run(script);
    EXPECT_EQ(finished.code, 0) << script << "\n" << finished.err;
    EXPECT_EQ(finished.err, "") << script;
    EXPECT_THAT(finished.out, MatchesRegex("[^\n]+\n")) << script;
    return finished.out.substr(0, finished.out.find('\n'));
  }
  std::string Tensors() const { return Run("warpline tensors").out; }

  const Ndarray<float> x_{{2, 3}, {1, 2, 3, 4, 5, 6}};
  const Ndarray<float> xt_{{3, 2}, {1, 4, 2, 5, 3, 6}};
  const Ndarray<float> b_{{3, 1}, {1, 10, 100}};
  const Ndarray<float> xb_{{2, 1}, {321, 654}};
};

TEST_F(CliTensorsTest, BringsArraysThereAndBack) {
  const std::vector<Ndarray<float>> arrays = {
      Zeros<float>({0}), Zeros<float>({3, 0, 2}), {{}, {7}}, x_, Numbers<float>({5 * 1024, 257}, 1)};
  for (const Ndarray<float>& array : arrays) {
    Put("in.npy", ToNpy(array));
    for (const char* channels : {"", " --channels 3"}) {
      const std::string id = Line(std::string("warpline put in.npy") + channels);
      const Finished finished = Run("warpline get " + id + " -o out.npy" + channels);
      EXPECT_EQ(finished.code, 0) << finished.err;
      EXPECT_THAT(finished.out + finished.err, IsEmpty());
      EXPECT_EQ(FromNpy<float>(Get("out.npy")), array);
      EXPECT_EQ(Run("warpline drop " + id).code, 0);
    }
  }
  EXPECT_EQ(Tensors(), "");
}

TEST_F(CliTensorsTest, ReadsFilesAsOtherCommandsDo) {
  // A single byte, standard input, Fortran order, raw memory.
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}\n";
  Put("byte.npy", std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) + '\0' + header + "!");
  EXPECT_EQ(Run("warpline get $(warpline put byte.npy) -o - | tail -c 1").out, "!");
  EXPECT_EQ(Run("warpline get $(cat x.npy | warpline put -) -o y.npy").code, 0);
  EXPECT_EQ(FromNpy<float>(Get("y.npy")), x_);
  const Ndarray<float> cube = Numbers<float>({2, 3, 4}, 5);
  Put("f.npy", ToNpy(cube, true));
  EXPECT_EQ(Run("warpline get @$(warpline put f.npy) -o y.npy").code, 0);
  EXPECT_EQ(FromNpy<float>(Get("y.npy")), cube);
  EXPECT_THAT(Get("y.npy"), HasSubstr("'fortran_order': False"));
  Put("raw.npy", ToNpy(Ndarray<std::uint16_t>{{2}, {1, 2}}));
  EXPECT_EQ(Run("warpline put raw.npy").code, 2);
  EXPECT_EQ(Run("warpline get $(warpline put raw.npy --dtype bf16) -o y.npy").code, 0);
  EXPECT_EQ(Get("y.npy").substr(Get("y.npy").size() - 4), Get("raw.npy").substr(Get("raw.npy").size() - 4));
  EXPECT_THAT(Tensors(), HasSubstr("  bf16[2]"));
}

TEST_F(CliTensorsTest, StandWhereverAnArrayIsRead) {
  const std::string x = Line("warpline put x.npy"), b = Line("warpline put b.npy");
  const std::string d = Line("warpline gemm @" + x + " @" + b + " -o @");
  EXPECT_EQ(Run("warpline get " + d + " -o d.npy").code, 0);
  EXPECT_EQ(FromNpy<float>(Get("d.npy")), xb_);
  EXPECT_EQ(Run("warpline gemm x.npy @" + b + " --c @" + d + " -o e.npy").code, 0);
  EXPECT_EQ(FromNpy<float>(Get("e.npy")), (Ndarray<float>{{2, 1}, {642, 1308}}));
  Put("v.npy", ToNpy(Ndarray<float>{{1}, {5}}));
  EXPECT_EQ(Run("warpline gemm x.npy @" + b + " --bias @$(warpline put v.npy) -o e.npy").code, 0);
  EXPECT_EQ(FromNpy<float>(Get("e.npy")), (Ndarray<float>{{2, 1}, {326, 659}}));
  EXPECT_EQ(Run("warpline transpose @" + x + " -o t.npy").code, 0);
  EXPECT_EQ(FromNpy<float>(Get("t.npy")), xt_);
  EXPECT_EQ(Run("warpline reduce @" + x + " --op sum --axes 0 -o s.npy").code, 0);
  EXPECT_EQ(FromNpy<float>(Get("s.npy")), (Ndarray<float>{{3}, {5, 7, 9}}));
  EXPECT_EQ(Run("warpline run -e 'gemm(x, b)' x=@" + x + " b:f32=@" + b + " -o d.npy").code, 0);
  EXPECT_EQ(FromNpy<float>(Get("d.npy")), xb_);
}

TEST_F(CliTensorsTest, LeavesResultsOnTheServer) {
  const std::string t = Line("warpline transpose x.npy -o @ --ttl 1h");
  EXPECT_THAT(Tensors(), ContainsRegex(t + "  f32\\[3,2\\]  device 0  24 bytes  3600 s left"));
  // The ids of several outputs come in the order of the outputs, and files may be among them.
  Finished finished =
      Run("warpline run -e 'p = gemm(x, b); q = transpose(x); add(p, p)' x=x.npy b=b.npy "
          "-o q=@ -o 3.add=sum.npy -o p=@ --timings");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("run q=f32[3,2] 3.add=f32[2,1] p=f32[2,1] "));
  ASSERT_THAT(finished.out, MatchesRegex("[^\n]+\n[^\n]+\n"));
  const std::size_t line = finished.out.find('\n');
  EXPECT_EQ(Run("warpline get " + finished.out.substr(0, line) + " -o q.npy").code, 0);
  EXPECT_EQ(FromNpy<float>(Get("q.npy")), xt_);
  EXPECT_EQ(FromNpy<float>(Get("sum.npy")), (Ndarray<float>{{2, 1}, {642, 1308}}));
  EXPECT_EQ(Run("warpline get " + finished.out.substr(line + 1, line) + " -o p.npy").code, 0);
  EXPECT_EQ(FromNpy<float>(Get("p.npy")), xb_);
  // A result that is reduced in Fortran order does not stay in it.
  const Ndarray<float> cube = Numbers<float>({2, 3, 4}, 5);
  Put("c.npy", ToNpy(cube));
  Put("f.npy", ToNpy(cube, true));
  EXPECT_EQ(Run("warpline reduce c.npy --op sum --axes 1 -o c1.npy;"
                "warpline get $(warpline reduce f.npy --op sum --axes 1 -o @) -o f1.npy; cmp c1.npy f1.npy")
                .code,
            0);
}

TEST_F(CliTensorsTest, KeepsNothingWhoseIdNobodyHas) {
  for (const char* script : {"warpline put x.npy >/dev/full", "warpline transpose x.npy -o @ >/dev/full"}) {
    const Finished finished = Run(script);
    EXPECT_EQ(finished.code, 1);
    EXPECT_THAT(finished.err, StartsWith("warpline: standard output: cannot write"));
  }
  EXPECT_EQ(Tensors(), "");
}

TEST_F(CliTensorsTest, ListsThem) {
  EXPECT_EQ(Run("warpline tensors --json").out, "[]\n");
  const std::string id = Line("warpline put x.npy --ttl 1h");
  EXPECT_THAT(Tensors(), MatchesRegex(id + "  f32\\[2,3\\]  device 0  24 bytes  3[56]..? s left\n"));
  EXPECT_THAT(Run("warpline tensors --json").out,
              StartsWith("[{\"id\":\"" + id +
                         "\",\"dtype\":\"f32\",\"shape\":[2,3],\"device\":0,\"replicas\":[],"
                         "\"size_bytes\":24,\"missing_bytes\":0,\"ttl_seconds\":3"));
}

TEST_F(CliTensorsTest, RefusesTensorsThatAreNotThere) {
  const std::string id = Line("warpline put x.npy");
  EXPECT_EQ(Run("warpline drop @" + id).code, 0);
  for (const std::string& script : {"warpline get " + id + " -o y.npy", "warpline drop " + id,
                                    "warpline transpose @" + id + " -o y.npy"}) {
    const Finished finished = Run(script);
    EXPECT_EQ(finished.code, 1) << script;
    EXPECT_THAT(finished.err, AllOf(StartsWith("warpline: NOT_FOUND: "),
                                    HasSubstr("..." + id.substr(id.size() - 8)), Not(HasSubstr(id))));
    EXPECT_FALSE(std::filesystem::exists(Path("y.npy")));
  }
  // The others are dropped all the same.
  EXPECT_EQ(Run("warpline drop " + id + " $(warpline put x.npy) $(warpline put b.npy)").code, 1);
  EXPECT_EQ(Tensors(), "");
}

TEST_F(CliTensorsTest, EndWithTheirLease) {
  const std::string id = Line("warpline put x.npy --ttl 1s");
  const std::string kept = Line("warpline transpose x.npy -o @ --ttl 1s");
  const Finished finished = Run("sleep 1.5; warpline transpose @" + id + " -o y.npy");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, StartsWith("warpline: NOT_FOUND: "));
  EXPECT_EQ(Run("warpline get " + kept + " -o y.npy").code, 1);
  EXPECT_EQ(Tensors(), "");
}

TEST_F(CliTensorsTest, EndWithTheirLeaseIfTheProgramIsKilled) {
  Put("large.npy", ToNpy(Zeros<float>({32, 1 << 20})));
  // Most likely it is in the midst of the transfer when its tensor can be seen.
  const Finished finished =
      Run("warpline put large.npy --ttl 1s >/dev/null & put=$!\n"
          "for i in $(seq 500); do [ -n \"$(warpline tensors)\" ] && break; done\n"
          "kill -9 $put; warpline tensors >before.txt; wait $put\n"
          "for i in $(seq 300); do [ -z \"$(warpline tensors)\" ] && break; sleep 0.1; done\n"
          "warpline tensors");
  EXPECT_THAT(Get("before.txt"), HasSubstr("f32[32,1048576]"));
  EXPECT_EQ(finished.out, "");
}

TEST_F(CliTensorsTest, RefusesTensorsOfAnotherServer) {
  Daemon other;
  const std::string id = Line("warpline --server " + other.address() + " put x.npy");
  for (const std::string& script : {"warpline get " + id + " -o y.npy",
                                    "warpline gemm x.npy @" + id + " -o y.npy", "warpline drop " + id}) {
    const Finished finished = Run(script);
    EXPECT_EQ(finished.code, 1) << script;
    EXPECT_THAT(finished.err,
                AllOf(StartsWith("warpline: FAILED_PRECONDITION: "), HasSubstr("put the tensor again")))
        << script;
  }
}

TEST_F(CliTensorsTest, TellsFilesFromTensors) {
  EXPECT_EQ(Run("cp x.npy @x; warpline transpose ./@x -o ./@y").code, 0);
  EXPECT_EQ(FromNpy<float>(Get("@y")), xt_);
  const Finished finished = Run("warpline transpose @x -o y.npy");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, HasSubstr("the file of that name is ./@x"));
}

TEST_F(CliTensorsTest, EndsWith2WhenItIsCalledWrongly) {
  const std::string id = Line("warpline put x.npy");
  for (const std::string& words :
       std::vector<std::string>{"put",
                                "put x.npy b.npy",
                                "put missing.npy",
                                "put @" + id,
                                "put x.npy --ttl 5",
                                "put x.npy --channels 65",
                                "put x.npy -o y.npy",
                                "get " + id,
                                "get -o y.npy",
                                "get " + id + " -o @",
                                "get @ -o y.npy",
                                "get " + id + " -o missing/y.npy",
                                "get " + id + " " + id + " -o y.npy",
                                "drop",
                                "drop @",
                                "tensors x.npy",
                                "transpose @ -o y.npy",
                                "transpose @" + id + " -o @y",
                                "transpose x.npy -o y.npy --ttl 5s",
                                "transpose @" + id + " --dtype f64 -o y.npy",
                                "run -e 'p = gemm(x, b); add(p, p)' x=x.npy b=b.npy -o p=@ -o 2.add=-"}) {
    const Finished finished = Run("warpline " + words);
    EXPECT_EQ(finished.code, 2) << words << "\n" << finished.err;
    EXPECT_THAT(finished.err, AllOf(StartsWith("warpline: "), HasSubstr("--help` tells more"))) << words;
    EXPECT_THAT(finished.err, Not(HasSubstr(id))) << words;
    EXPECT_EQ(finished.out, "") << words;
  }
}

TEST_F(CliTensorsTest, ShowsNoWholeIdInErrors) {
  const std::string id = Line("warpline put x.npy");
  for (const std::string& words :
       {id, "drop=" + id, "run -e 'p = transpose(a)' b=@" + id + " -o p=@",
        "run -e 'p = transpose(a)' @" + id + " -o p=@", "run -e 'p = transpose(a)' =@" + id + " -o p=@",
        "run -e 'gemm(@" + id + ",b)' -o @", "gemm x.npy b.npy -o y.npy --alpha @" + id,
        "bench --resident @" + id, "transpose x.npy --perm " + id + " -o y.npy",
        "transpose x.npy --of=" + id}) {
    const Finished finished = Run("warpline " + words);
    EXPECT_EQ(finished.code, 2) << words << "\n" << finished.err;
    // Not even a part of it but the end.
    EXPECT_THAT(finished.err,
                AllOf(HasSubstr("..." + id.substr(id.size() - 8)), Not(HasSubstr(id.substr(9, 8)))))
        << words;
    EXPECT_EQ(finished.out, "") << words;
  }
}

TEST_F(CliTensorsTest, SaysWhichTensorsAreNotThere) {
  const Finished two = Run("warpline drop nothing $(warpline put x.npy) another");
  EXPECT_EQ(two.code, 1);
  EXPECT_THAT(two.err, AllOf(StartsWith("warpline: NOT_FOUND: 2 of 3 tensors were not dropped\n"),
                             HasSubstr("\n  ...nothing: id: "), HasSubstr("\n  ...another: id: "),
                             HasSubstr("(NOT_FOUND)\n")));
  EXPECT_EQ(Tensors(), "");
  const Finished one = Run("warpline drop nothing");
  EXPECT_THAT(one.err, StartsWith("warpline: NOT_FOUND: ...nothing: "));
  const Finished unreachable = Run("warpline --server unix:./nobody drop one two three");
  EXPECT_THAT(unreachable.err, AllOf(HasSubstr("3 of 3 tensors were not dropped\n  ...one: "),
                                     HasSubstr("2 more were not tried"), HasSubstr("no server answers")));
  const Finished operand = Run("warpline gemm x.npy @nonsense -o y.npy");
  EXPECT_EQ(operand.code, 1);
  EXPECT_THAT(operand.err, StartsWith("warpline: NOT_FOUND: @...nonsense: "));
}

TEST_F(CliTensorsTest, ShowsProgressOnATerminal) {
  Put("large.npy", ToNpy(Zeros<float>({1 << 20})));
  const Finished put = Run("script -qec 'warpline put large.npy >id.txt' log.txt");
  EXPECT_THAT(put.out, AllOf(HasSubstr("put large.npy: 4.0 of 4.0 MiB, "), HasSubstr(" MiB/s")));
  const Finished got = Run("script -qec \"warpline get $(cat id.txt) -o y.npy\" log.txt");
  EXPECT_THAT(got.out, AllOf(HasSubstr("get ..."), HasSubstr(": 4.0 of 4.0 MiB, ")));
  EXPECT_EQ(FromNpy<float>(Get("y.npy")), Zeros<float>({1 << 20}));
  EXPECT_EQ(Run("script -qec 'warpline put large.npy -q >id.txt' log.txt").out, "");
  EXPECT_EQ(Run("script -qec \"warpline get $(cat id.txt) -q -o y.npy\" log.txt").out, "");
  // No other command has something to show, and no file gets it.
  EXPECT_EQ(Run("script -qec 'warpline transpose large.npy -o y.npy' log.txt").out, "");
  EXPECT_EQ(Run("warpline put large.npy >id.txt").err, "");
}

class CliTensorsQuotaTest : public CliTensorsTest {
 protected:
  CliTensorsQuotaTest() : CliTensorsTest({"--resident-bytes=32M"}) {}
};

TEST_F(CliTensorsQuotaTest, TellsTheFiguresWhenTheServerIsFull) {
  Put("half.npy", ToNpy(Zeros<float>({5'000'000})));
  EXPECT_EQ(Run("warpline put half.npy").code, 0);
  for (const char* script : {"warpline put half.npy", "warpline transpose half.npy --perm 0 -o @"}) {
    const Finished finished = Run(script);
    EXPECT_EQ(finished.code, 1);
    EXPECT_THAT(finished.err, AllOf(StartsWith("warpline: RESOURCE_EXHAUSTED: "), HasSubstr("20000000 bytes"),
                                    HasSubstr("33554432")));
    EXPECT_THAT(finished.err, AllOf(HasSubstr("try again after"), HasSubstr("`warpline drop ID`"))) << script;
    EXPECT_EQ(finished.out, "");
  }
}

class CliTensorsNoneTest : public CliTensorsTest {
 protected:
  CliTensorsNoneTest() : CliTensorsTest({"--resident-bytes=0", "--max-inline-bytes=2M"}) {}
};

TEST_F(CliTensorsNoneTest, SaysThatTheServerKeepsNone) {
  for (const char* script : {"warpline put x.npy", "warpline transpose x.npy -o @"}) {
    const Finished finished = Run(script);
    EXPECT_EQ(finished.code, 1) << script;
    EXPECT_THAT(finished.err,
                AllOf(StartsWith("warpline: RESOURCE_EXHAUSTED: "), HasSubstr("the server keeps none"),
                      Not(HasSubstr("try again")), Not(HasSubstr("one message"))));
  }
}

class CliNoUploadsTest : public CliTensorsTest {
 protected:
  CliNoUploadsTest() : CliTensorsTest({"--upload-bytes=0", "--max-inline-bytes=2M"}) {}
};

TEST_F(CliNoUploadsTest, ErrorsAreThoseOfMessages) {
  Put("large.npy", ToNpy(Zeros<float>({1 << 20})));
  const Finished operand = Run("warpline transpose large.npy --perm 0 -o y.npy");
  EXPECT_EQ(operand.code, 1);
  EXPECT_THAT(operand.err,
              AllOf(StartsWith("warpline: RESOURCE_EXHAUSTED: "), HasSubstr("--max-inline-bytes")));
  Put("v.npy", ToNpy(Zeros<float>({1, 1000})));
  const Finished result = Run("warpline gemm v.npy v.npy --trans-a -o y.npy");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("takes 4000000 bytes; the limit is 2097152"), HasSubstr("-o @")));
  const Finished sent = Run("warpline gemm v.npy v.npy --trans-a -o y.npy --transport stream");
  EXPECT_EQ(sent.code, 1);
  EXPECT_THAT(sent.err, HasSubstr("its --upload-bytes is 0 there")) << "which was asked for";
}

}  // namespace
}  // namespace warpline
