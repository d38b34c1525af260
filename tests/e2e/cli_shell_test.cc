// The program among shells and terminals, and what it says to people: hints, help, completion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/cli.h"
#include "tests/e2e/ndarray.h"

namespace warpline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class CliShellTest : public CliTest {
 protected:
  CliShellTest() : CliTest(std::vector<std::string>{}) {  // no --echo
    Put("x.npy", ToNpy(Ndarray<float>{{2, 3}, {1, 2, 3, 4, 5, 6}}));
  }

  // Returns the completions that bash offers for the last of the words, in one line.
  std::string Completed(const std::string& words) const {
    Put("complete.bash",
        "source <(warpline completion bash)\nCOMP_WORDS=(" + words +
            ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_warpline 2>complaint.txt\necho ${COMPREPLY[*]}\n");
    const Finished finished = Run("bash complete.bash");
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(Get("complaint.txt"), "") << words;
    return finished.out;
  }
};

TEST_F(CliShellTest, WritesNoBytesToATerminal) {
  for (const char* output : {"-o -", "-o /dev/stdout"}) {
    const Finished finished =
        Run(std::string("script -qec 'warpline transpose x.npy ") + output + "' log.txt");
    EXPECT_EQ(finished.code, 2) << output;
    EXPECT_THAT(finished.out, AllOf(HasSubstr("the terminal would show bytes"), Not(HasSubstr("NUMPY"))));
  }
  EXPECT_EQ(Run("script -qec 'warpline run -e \"add(x, x)\" x=x.npy -o -' log.txt").code, 2);
  EXPECT_EQ(Run("script -qec 'warpline transpose x.npy -o - | cat >y.npy' log.txt").code, 0);
}

TEST_F(CliShellTest, SaysHowToStartAServerWhenNoneIsThere) {
  for (const char* words : {"transpose x.npy -o y.npy", "run -e 'add(x, x)' x=x.npy -o y.npy", "info",
                            "health", "bench --requests 1 --warmup 0s"}) {
    const Finished finished = Run(std::string("warpline --server unix:./nothing ") + words);
    EXPECT_EQ(finished.code, 1) << words;
    EXPECT_THAT(finished.err, AllOf(StartsWith("warpline: UNAVAILABLE: "),
                                    HasSubstr("no server answers at unix:./nothing: start warplined there")))
        << words;
  }
}

TEST_F(CliShellTest, SaysThatTheServerHasNoEcho) {
  const Finished finished = Run("warpline bench --op echo --requests 1 --warmup 0s");
  EXPECT_EQ(finished.code, 1);
  EXPECT_EQ(finished.err,
            "warpline: UNIMPLEMENTED: there is no method /warpline.v1.EchoService/Echo\n"
            "(the server has no echo: start it as warplined --echo)\n");
}

TEST_F(CliShellTest, ShowsAnExampleOfEachCommand) {
  for (const char* command :
       {"transpose", "gemm", "reduce", "run", "info", "health", "bench", "completion"}) {
    const Finished finished = Run(std::string("warpline ") + command + " --help");
    EXPECT_EQ(finished.code, 0) << command;
    EXPECT_THAT(finished.out, AllOf(StartsWith(std::string("Usage: warpline ") + command),
                                    HasSubstr(std::string("\nexample: warpline ") + command)));
    EXPECT_THAT(Run("warpline --help").out, HasSubstr(std::string("\n  ") + command + " "));
  }
}

TEST_F(CliShellTest, CompletesInBash) {
  EXPECT_EQ(Run("warpline completion bash | bash -n").code, 0);
  EXPECT_EQ(Completed("warpline re"), "reduce\n");
  EXPECT_EQ(Completed("warpline --server transpose ga"), "\n");
  EXPECT_EQ(Completed("warpline --server = here ge"), "gemm get\n");
  EXPECT_EQ(Completed("warpline reduce --ke"), "--keepdims\n");
  EXPECT_EQ(Completed("warpline reduce x.npy --op log"), "logsumexp\n");
  EXPECT_EQ(Completed("warpline reduce x.npy --op = arg"), "argmin argmax\n");
  EXPECT_EQ(Completed("warpline bench --op g"), "gemm\n");
  EXPECT_EQ(Completed("warpline gemm --activation ''"), "none relu gelu\n");
  EXPECT_EQ(Completed("warpline gemm a.npy --out-dtype f8"), "f8e4m3 f8e5m2\n");
  EXPECT_EQ(Completed("warpline transpose x.n"), "x.npy\n");
  EXPECT_EQ(Completed("warpline put x.n"), "x.npy\n");
  EXPECT_EQ(Completed("warpline get x.n"), "\n");  // an id
  EXPECT_EQ(Completed("warpline run p.json a = x.n"), "x.npy\n");
  EXPECT_EQ(Completed("warpline completion z"), "zsh\n");
  EXPECT_EQ(Completed("warpline --ver"), "--version\n");
}

TEST_F(CliShellTest, CompletesInZsh) {
  if (Run("command -v zsh").code != 0) GTEST_SKIP() << "no zsh here";
  EXPECT_EQ(Run("warpline completion zsh >_warpline; zsh -n _warpline").code, 0);
}

TEST_F(CliShellTest, CompletesForNoOtherShell) {
  EXPECT_EQ(Run("warpline completion").code, 2);
  EXPECT_EQ(Run("warpline completion fish").code, 2);
}

}  // namespace
}  // namespace warpline
