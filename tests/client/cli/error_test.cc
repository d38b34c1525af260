#include "client/cli/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/src/grpc_error.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace warpline::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(CliErrorTest, TellsWhoseFaultItIs) {
  EXPECT_EQ(ExitCode(absl::OkStatus()), 0);

  const absl::Status usage = UsageError("--perm=x: expected numbers");
  EXPECT_EQ(ExitCode(usage), 2);
  EXPECT_EQ(Complaint(usage), "--perm=x: expected numbers\n(`warpline --help` tells more)");
  EXPECT_EQ(ComplaintJson(usage), R"({"error":{"kind":"usage","message":"--perm=x: expected numbers"}})");

  const absl::Status server = absl::UnavailableError("draining");
  EXPECT_EQ(ExitCode(server), 1);
  EXPECT_EQ(Complaint(server), "UNAVAILABLE: draining");
  EXPECT_EQ(ComplaintJson(WithAdvice(server, "wait")),
            R"({"error":{"kind":"call","code":"UNAVAILABLE","message":"draining","advice":"wait"}})");

  EXPECT_EQ(ExitCode(LocalError("broken")), 1);
  EXPECT_EQ(Complaint(LocalError("broken")), "broken");
  EXPECT_EQ(ComplaintJson(LocalError("broken\xff")),
            "{\"error\":{\"kind\":\"local\",\"message\":\"broken\xef\xbf\xbd\"}}");
}

TEST(CliErrorTest, TellsAWrongFileFromABrokenOne) {
  EXPECT_EQ(ExitCode(AsFileError(absl::InvalidArgumentError("x.npy: cannot open"))), 2);
  const absl::Status full =
      AsFileError(absl::UnavailableError("x.npy: cannot write: No space left on device"));
  EXPECT_EQ(ExitCode(full), 1);
  EXPECT_EQ(Complaint(full), "x.npy: cannot write: No space left on device");
}

TEST(CliErrorTest, SaysWhatToDoWhenNobodyIsThere) {
  const absl::Status refused = absl::UnavailableError("failed to connect to all addresses");
  EXPECT_EQ(
      Complaint(WithAdviceOnServer(refused, "host:1")),
      "UNAVAILABLE: failed to connect to all addresses\n(no server answers at host:1: start warplined there, "
      "or name another with --server or $WARPLINE_SERVER)");
  const absl::Status draining = absl::UnavailableError("draining");
  EXPECT_EQ(Complaint(WithAdviceOnServer(draining, "host:1")), "UNAVAILABLE: draining");
  EXPECT_EQ(Complaint(WithAdviceOnServer(UsageError("failed to connect"), "host:1")),
            Complaint(UsageError("failed to connect")));
  EXPECT_TRUE(WithAdviceOnServer(absl::OkStatus(), "host:1").ok());
}

TEST(CliErrorTest, NamesTheLimitOfAMessageThatHasNoRoom) {
  const absl::Status large = absl::ResourceExhaustedError("Received RST_STREAM with error code 11");
  EXPECT_THAT(Complaint(WithAdviceOnServer(large, "host:1")),
              HasSubstr("(the request is far larger than the --max-inline-bytes of the server at host:1"));
}

TEST(CliErrorTest, NamesTheLimitOfAMessageThatIsTooLarge) {
  const absl::Status large = absl::ResourceExhaustedError("Received message larger than max (20 vs. 10)");
  EXPECT_EQ(
      Complaint(WithAdviceOnServer(large, "host:1")),
      "RESOURCE_EXHAUSTED: Received message larger than max (20 vs. 10)\n(the request is larger than the "
      "server at host:1 takes: its --max-inline-bytes is the limit, and `warpline info` shows it; "
      "`warpline put` sends arrays of any size)");
  const absl::Status full = absl::ResourceExhaustedError("the server is full");
  EXPECT_EQ(Complaint(WithAdviceOnServer(full, "host:1")), "RESOURCE_EXHAUSTED: the server is full");
}

TEST(CliErrorTest, SaysWhereResultsOfAnySizeCanGo) {
  const absl::Status large =
      absl::InvalidArgumentError("a.shape: the result, f32 [9], takes 36 bytes; the limit is 20");
  EXPECT_THAT(Complaint(WithAdviceOnServer(large, "host:1")),
              AllOf(StartsWith("INVALID_ARGUMENT: a.shape: the result, "), HasSubstr("-o @"),
                    HasSubstr("--transport stream")));
  const absl::Status other = absl::InvalidArgumentError("x.shape: rank 9; the limit is 8");
  EXPECT_EQ(Complaint(WithAdviceOnServer(other, "host:1")), Complaint(other));
}

TEST(CliErrorTest, SaysHowToMakeRoomForTensors) {
  google::rpc::Status details;
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(1);
  static_cast<void>(details.add_details()->PackFrom(retry));
  const std::string text = "a resident tensor of 20 bytes does not fit";
  const grpc::Status full(grpc::StatusCode::RESOURCE_EXHAUSTED, text, details.SerializeAsString());
  EXPECT_THAT(Complaint(WithAdviceOnServer(ToAbslStatus(full, ""), "host:1")),
              AllOf(HasSubstr("\n  try again after 1s\n("), HasSubstr("`warpline tensors`"),
                    HasSubstr("`warpline drop ID`")));
  // If a tensor never fits, dropping others is no use.
  const absl::Status never = absl::ResourceExhaustedError(text);
  EXPECT_EQ(Complaint(WithAdviceOnServer(never, "host:1")), Complaint(never));
}

TEST(CliErrorTest, TellsASocketOfSomebodyElseFromNobody) {
  const absl::Status denied = absl::UnavailableError(
      "failed to connect to all addresses; last error: UNKNOWN: unix:/w: Permission denied");
  EXPECT_THAT(
      Complaint(WithAdviceOnServer(denied, "unix:/w")),
      AllOf(HasSubstr("the socket unix:/w is there"), HasSubstr("0600"), Not(HasSubstr("no server"))));
  EXPECT_THAT(Complaint(WithAdviceOnServer(denied, "host:1")), HasSubstr("no server answers at host:1"));
}

TEST(CliErrorTest, ShowsNoWholeId) {
  const std::string id = "410e9bc9-8015160a8eb8167f32327b3b944e7266";
  for (const absl::Status& status :
       {UsageError("b=@" + id + ": no"), LocalError(id + ": no"), absl::NotFoundError("x: " + id),
        WithAdvice(absl::NotFoundError("x"), "the file is ./@" + id)}) {
    EXPECT_THAT(Complaint(status), AllOf(HasSubstr("...944e7266"), Not(HasSubstr("8eb8"))));
  }
}

TEST(CliErrorTest, NamesWhatAnErrorIsAbout) {
  const absl::Status named = WithSubject(AsUsageError(absl::NotFoundError("no")), "@...x");
  EXPECT_EQ(named.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(named.message(), "@...x: no");
  EXPECT_TRUE(IsUsageError(named));
}

TEST(CliErrorTest, TellsAnOlderServerFromOneThatWillNot) {
  const grpc::Status unknown(grpc::StatusCode::UNIMPLEMENTED, "");
  EXPECT_EQ(Complaint(WithAdviceOnServer(ToAbslStatus(unknown, ""), "host:1"))
                .find("UNIMPLEMENTED\n(the server at "
                      "host:1 has no such method: it is older"),
            0u);
  const grpc::Status refused(grpc::StatusCode::UNIMPLEMENTED, "gemm of c64");
  EXPECT_EQ(Complaint(WithAdviceOnServer(ToAbslStatus(refused, "7"), "host:1")),
            "UNIMPLEMENTED: gemm of c64\n  request id: 7");
}

TEST(CliErrorTest, PointsToTheHelpOfTheCommand) {
  EXPECT_EQ(Complaint(WithAdviceOnCommand(UsageError("no"), "gemm")),
            "no\n(`warpline gemm --help` tells more)");
  const absl::Status server = absl::UnavailableError("draining");
  EXPECT_EQ(Complaint(WithAdviceOnCommand(server, "gemm")), Complaint(server));
  EXPECT_TRUE(WithAdviceOnCommand(absl::OkStatus(), "gemm").ok());
}

TEST(CliErrorTest, KeepsTheFirstAdvice) {
  const absl::Status advised = WithAdvice(absl::UnimplementedError("no"), "do this");
  EXPECT_EQ(Complaint(WithAdviceOnServer(advised, "host:1")), "UNIMPLEMENTED: no\n(do this)");
  EXPECT_EQ(ExitCode(advised), 1);
}

}  // namespace
}  // namespace warpline::client
