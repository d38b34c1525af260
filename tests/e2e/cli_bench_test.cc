// The load generator counts right, and does not call a failure a measurement.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/e2e/cli.h"

namespace warpline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CliBenchTest : public CliTest {
 protected:
  using CliTest::CliTest;

  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "under ThreadSanitizer protobuf's maps are not laid out as in the distribution's library";
#endif
  }

  // The report that the command prints, which must succeed.
  google::protobuf::Struct Report(const std::string& flags) const {
    google::protobuf::Struct report;
    const Finished finished = Run("warpline bench --json --warmup 0s " + flags);
    EXPECT_EQ(finished.code, 0) << flags << "\n" << finished.err;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(finished.out, &report).ok()) << finished.out;
    return report;
  }
};

class CliBenchOverloadTest : public CliBenchTest {
 protected:
  CliBenchOverloadTest() : CliBenchTest({"--lanes=1", "--max-jobs=1"}) {}
};

void ExpectRequests(const google::protobuf::Struct& report, int count) {
  const auto number = [&](const char* name) {
    const auto field = report.fields().find(name);
    return field == report.fields().end() ? -1 : field->second.number_value();
  };
  EXPECT_EQ(number("requests"), count);
  EXPECT_EQ(number("unsent"), 0);
  EXPECT_GT(number("requests_per_second"), 0);
  const auto errors = report.fields().find("errors");
  ASSERT_NE(errors, report.fields().end());
  EXPECT_EQ(errors->second.struct_value().fields_size(), 0);
}

TEST_F(CliBenchTest, MeasuresEveryOperation) {
  for (const char* flags :
       {"--op transpose --shape 40x50", "--op gemm --shape 20x30x40", "--op reduce --shape 6x7x8 --axes 1",
        "--op echo --shape 100x100", "--op transpose --dtype bf16 --shape 3x5"}) {
    ExpectRequests(Report(std::string(flags) + " --requests 20"), 20);
  }
}

TEST_F(CliBenchTest, MeasuresAClosedLoopOverConnections) {
  ExpectRequests(Report("--channels 2 --concurrency 6 --requests 100"), 100);
}

TEST_F(CliBenchTest, MeasuresAnOpenLoop) {
  ExpectRequests(Report("--rate 500 --requests 50"), 50);
  ExpectRequests(Report("--rate 500 --arrivals fixed --requests 50 --op echo --shape 1024x1024"), 50);
}

TEST_F(CliBenchTest, PrintsForPeopleToo) {
  const Finished finished = Run("warpline bench --requests 5 --warmup 0s");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out,
              AllOf(StartsWith("transpose f32[32,32], inline, 1 channel, 1 in flight\n  5 requests in "),
                    HasSubstr("errors: none")));
}

TEST_F(CliBenchTest, FailsWhenNothingWasMeasured) {
  const Finished finished = Run("warpline bench --warmup 0s --duration 1ns");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, HasSubstr("no request was measured"));
}

TEST_F(CliBenchTest, FailsBeforeItMeasuresWhatTheServerRefuses) {
  const Finished finished = Run("warpline bench --requests 5 --variant no-such-one");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, StartsWith("warpline: INVALID_ARGUMENT: "));
}

TEST_F(CliBenchTest, MeasuresTheNewTypesAndReductions) {
  for (const char* flags :
       {"--op gemm --dtype i8 --shape 20x30x40", "--op transpose --dtype c128 --shape 9x5",
        "--op reduce --reduce-op std --dtype u16 --shape 60x7 --axes 0",
        "--op reduce --reduce-op argmin --dtype bool --shape 60x7 --axes 1"}) {
    ExpectRequests(Report(std::string(flags) + " --requests 5"), 5);
  }
}

TEST_F(CliBenchTest, RestsWhenTheServerHasGone) {
  std::thread stop([&] {
    // Late enough that the client has connected on a busy machine, too.
    std::this_thread::sleep_for(std::chrono::seconds(2));
    daemon_.Signal(SIGTERM);
  });
  const Finished finished =
      Run("warpline bench --json --warmup 0s --duration 5s --channels 2 --concurrency 4");
  stop.join();
  EXPECT_EQ(daemon_.Wait(), 0);
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, AllOf(StartsWith(R"({"error":{"kind":"call","code":"UNAVAILABLE","message":")"),
                                  HasSubstr("requests failed")));
  google::protobuf::Struct report;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(finished.out, &report).ok()) << finished.out;
  // Each of the four fails ten times a second at most.
  const double failed = report.fields().at("errors").struct_value().fields().at("UNAVAILABLE").number_value();
  EXPECT_GT(failed, 4);
  EXPECT_LT(failed, 250);
}

TEST_F(CliBenchOverloadTest, FailsWhenSomeRequestsFailed) {
  if (daemon_.backend() != "cpu") GTEST_SKIP() << "needs a slow variant that is known by name";
  // One at a time is admitted, which takes long enough for the others to find it there.
  const Finished finished =
      Run("warpline bench --op gemm --shape 400x400x400 --variant reference --concurrency 8 --requests 16 "
          "--warmup 0s");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.out, HasSubstr("errors: RESOURCE_EXHAUSTED "));
  EXPECT_THAT(finished.err,
              AllOf(StartsWith("warpline: RESOURCE_EXHAUSTED: "), HasSubstr(" of 16 requests failed")));
}

}  // namespace
}  // namespace warpline
