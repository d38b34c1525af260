// How arrays travel between files and the server makes no difference to what is computed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/e2e/cli.h"
#include "tests/e2e/ndarray.h"

namespace warpline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string SocketPath() { return "/tmp/warpline_cli_transport." + std::to_string(::getpid()); }

class CliTransportTest : public CliTest {
 protected:
  explicit CliTransportTest(std::vector<std::string> flags = {})
      : CliTest([&] {
          flags.push_back("--listen=unix:" + SocketPath());
          return flags;
        }()) {}

  // Runs the command, which must succeed and write y.npy.
  Ndarray<float> Compute(const std::string& command) const {
    const Finished finished = Run("rm -f y.npy; warpline " + command + " -o y.npy");
    EXPECT_EQ(finished.code, 0) << command << "\n" << finished.err;
    return finished.code == 0 ? FromNpy<float>(Get("y.npy")) : Ndarray<float>();
  }
  double Copied() const { return daemon_.Metric("warpline_host_copy_bytes_total"); }
};

Ndarray<float> Counted(const Sizes& shape) {
  Ndarray<float> x = Zeros<float>(shape);
  for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] = static_cast<float>(i % 13) - 6;
  return x;
}

TEST_F(CliTransportTest, GivesTheSameResultsEitherWay) {
  Put("x.npy", ToNpy(Counted({700, 500})));
  Put("fortran.npy", ToNpy(Counted({700, 500}), true));
  Put("batch.npy", ToNpy(Counted({2, 30, 40}), true));
  for (const char* command :
       {"transpose x.npy", "gemm x.npy x.npy --trans-b", "reduce x.npy --op sum --axes 0",
        "gemm batch.npy batch.npy --trans-b", "reduce - --op max <x.npy", "gemm fortran.npy x.npy --trans-a",
        "reduce fortran.npy --op mean --axes 1", "transpose fortran.npy",
        "run -e 'reduce(gemm(transpose(x), y), op=sum)' x=x.npy y=fortran.npy"}) {
    const Ndarray<float> expected = Compute(std::string(command) + " --transport inline");
    for (const char* transport : {"auto", "shm", "stream"}) {
      const Ndarray<float> y = Compute(std::string(command) + " --transport " + transport);
      EXPECT_EQ(y.shape, expected.shape) << command << " " << transport;
      EXPECT_EQ(y.values, expected.values) << command << " " << transport;
    }
  }
}

TEST_F(CliTransportTest, CopiesNothingThroughSharedMemory) {
  Put("x.npy", ToNpy(Counted({1024, 512})));
  const double before = Copied();
  Compute("transpose x.npy");
  EXPECT_EQ(Copied(), before) << "auto is shm over a unix socket";
  Compute("transpose x.npy --transport inline");
  EXPECT_GT(Copied(), before);
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_regions", "", 0)) << "the program has gone";
}

TEST_F(CliTransportTest, TakesProgramsWithSeveralOutputsAndTensors) {
  Put("x.npy", ToNpy(Counted({300, 400})));
  for (const char* transport : {"inline", "shm", "stream"}) {
    const Finished finished = Run(
        std::string("warpline run -e 't = transpose(x); s = reduce(t, op=sum, axes=[0]); add(t, t)' x=x.npy "
                    "-o t=t.npy -o s=s.npy -o 3.add=@ --transport ") +
        transport);
    ASSERT_EQ(finished.code, 0) << finished.err;
    const std::string id = finished.out.substr(0, finished.out.find('\n'));
    EXPECT_EQ(FromNpy<float>(Get("t.npy")).shape, (Sizes{400, 300}));
    EXPECT_EQ(FromNpy<float>(Get("s.npy")).shape, (Sizes{300}));
    const Ndarray<float> maximum = Compute("reduce @" + id + " --op max --transport " + transport);
    EXPECT_EQ(maximum.values, std::vector<float>{12});
    EXPECT_EQ(Run("warpline drop " + id).code, 0);
  }
  EXPECT_EQ(Run("warpline tensors").out, "") << "what was streamed has been dropped";
}

TEST_F(CliTransportTest, TellsHowArraysTravelled) {
  Put("x.npy", ToNpy(Counted({30, 40})));
  for (const std::string transport : {"inline", "shm", "stream"}) {
    const std::string command = "warpline transpose x.npy -o y.npy --timings --transport " + transport;
    EXPECT_THAT(Run(command).out, HasSubstr(" " + transport + " "));
    EXPECT_THAT(Run(command + " --json").out, HasSubstr("\"transports\":[\"" + transport + "\"]"));
  }
  EXPECT_THAT(Run("warpline gemm x.npy @$(warpline put x.npy) --trans-b -o y.npy --timings").out,
              HasSubstr(" inline+resident "));
  EXPECT_THAT(Run("warpline run -e 'p = transpose(a); q = transpose(p)' a=x.npy -o p=@ -o q=q.npy --timings "
                  "--transport shm")
                  .err,
              HasSubstr(" shm+resident "));
}

TEST_F(CliTransportTest, SaysWhichSocketIsThatOfRegions) {
  Put("x.npy", ToNpy(Counted({30, 40})));
  const Finished other = Run("warpline transpose x.npy -o y.npy --regions " + SocketPath());
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("that of a server at unix:PATH is PATH.regions"));
}

TEST_F(CliTransportTest, ReadsBigEndianFilesIntoSharedMemory) {
  // The elements are 1.5 and -2.
  std::string text = "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }";
  text.resize(117, ' ');
  Put("x.npy", std::string("\x93NUMPY\x01\x00\x76\x00", 10) + text + "\n" +
                   std::string("\x3f\xc0\x00\x00\xc0\x00\x00\x00", 8));
  EXPECT_EQ(Compute("transpose x.npy --transport shm").values, (std::vector<float>{1.5, -2}));
}

TEST_F(CliTransportTest, TellsErrorsAsEver) {
  Put("x.npy", ToNpy(Counted({30, 40})));
  Put("short.npy", ToNpy(Counted({30, 40})).substr(0, 500));
  const Finished refused = Run("warpline transpose x.npy -o y.npy --variant none --transport shm");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, StartsWith("warpline: INVALID_ARGUMENT: "));
  const Finished cut = Run("warpline transpose short.npy -o y.npy --transport shm");
  EXPECT_EQ(cut.code, 2);
  EXPECT_THAT(cut.err, HasSubstr("short.npy: the file is truncated"));
  const Finished unknown = Run("warpline transpose x.npy -o y.npy --transport tcp");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--transport: tcp not in {auto,inline,shm,stream}"));
  EXPECT_EQ(Run("warpline put x.npy --transport shm").code, 2) << "it is always streamed";
}

TEST_F(CliTransportTest, MeasuresEitherWay) {
  for (const char* flags : {"--transport shm", "--transport shm --concurrency 4 --channels 2",
                            "--transport shm --op gemm --resident b", "--op reduce --resident x --keep",
                            "--op gemm --transport shm --keep", "--transport shm --rate 500"}) {
    const Finished finished = Run(std::string("warpline bench --requests 20 --warmup 0s ") + flags);
    EXPECT_EQ(finished.code, 0) << flags << "\n" << finished.err;
    EXPECT_THAT(finished.out, AllOf(HasSubstr("20 requests in"), HasSubstr("errors: none"))) << flags;
  }
  const Finished json =
      Run("warpline bench --op gemm --requests 5 --warmup 0s --transport shm --resident b --keep --json");
  EXPECT_THAT(json.out, HasSubstr(R"("transport":"shm","resident":["b"],"keep":true,"requests":5,)"));
  EXPECT_EQ(Run("warpline tensors").out, "");
}

class CliTransportLimitTest : public CliTransportTest {
 protected:
  CliTransportLimitTest() : CliTransportTest({"--region-bytes=0", "--max-inline-bytes=4M"}) {}
};

TEST_F(CliTransportLimitTest, AutoFindsAnotherWay) {
  Put("x.npy", ToNpy(Counted({1500, 1000})));
  const Ndarray<float> y = Compute("transpose x.npy");
  EXPECT_EQ(y.shape, (Sizes{1000, 1500}));
  EXPECT_EQ(y.values[1], FromNpy<float>(Get("x.npy")).values[1000]);
  const Finished shared = Run("warpline transpose x.npy -o y.npy --transport shm");
  EXPECT_EQ(shared.code, 1);
  EXPECT_THAT(shared.err, StartsWith("warpline: UNIMPLEMENTED: "));
  const Finished sent = Run("warpline transpose x.npy -o y.npy --transport inline");
  EXPECT_EQ(sent.code, 1);
  EXPECT_THAT(sent.err, StartsWith("warpline: RESOURCE_EXHAUSTED: "));
}

class CliTransportTcpTest : public CliTest {};

TEST_F(CliTransportTcpTest, SharesMemoryIfItIsToldWhere) {
  Put("x.npy", ToNpy(Counted({3, 4})));
  const Finished unknown = Run("warpline transpose x.npy -o y.npy --transport shm");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err,
              AllOf(HasSubstr("--transport=shm: the server is at 127.0.0.1:"), HasSubstr("--regions")));
  const Finished nobody = Run("warpline transpose x.npy -o y.npy --transport shm --regions ./nothing");
  EXPECT_EQ(nobody.code, 2);
  EXPECT_THAT(nobody.err, HasSubstr("--regions=./nothing: No such file or directory"));
  // A region socket that is given by its path is not ignored in silence either, whatever the size of the
  // array.
  Put("large.npy", ToNpy(Counted({600, 700})));
  EXPECT_EQ(Run("warpline transpose large.npy -o y.npy --regions ./nothing").code, 2);
  EXPECT_EQ(Run("warpline transpose x.npy -o y.npy --regions ./nothing").code, 2);
  EXPECT_EQ(Run("warpline transpose x.npy -o y.npy --regions x.npy").code, 2);
  EXPECT_EQ(Run("warpline transpose large.npy -o y.npy").code, 0);
}

TEST_F(CliTransportTcpTest, MeasuresSharedMemoryOnlyIfItIsToldWhere) {
  const Finished unknown = Run("warpline bench --transport shm");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("or name its region socket with --regions"));
  EXPECT_EQ(Run("warpline bench --transport shm --regions ./nothing").code, 2);
  const Finished unused = Run("warpline bench --regions ./nothing");
  EXPECT_EQ(unused.code, 2);
  EXPECT_THAT(unused.err, HasSubstr("only with --transport shm"));
}

class CliTransportRegionsTest : public CliTest {
 protected:
  CliTransportRegionsTest() : CliTest({"--regions=" + SocketPath() + ".regions"}) {}
};

TEST_F(CliTransportRegionsTest, TakesThePathWithItsSchemeToo) {
  Put("x.npy", ToNpy(Counted({3, 4})));
  for (const char* scheme : {"", "unix:"}) {
    const Finished finished = Run("warpline transpose x.npy -o y.npy --timings --transport shm --regions " +
                                  std::string(scheme) + SocketPath() + ".regions");
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_THAT(finished.out, HasSubstr(" shm "));
  }
}

}  // namespace
}  // namespace warpline
