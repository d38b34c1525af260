#include "client/cli/error.h"

#include <gtest/gtest.h>

#include "client/src/grpc_error.h"

namespace warpline::client {
namespace {

TEST(CliErrorTest, TellsWhoseFaultItIs) {
  EXPECT_EQ(ExitCode(absl::OkStatus()), 0);

  const absl::Status usage = UsageError("--perm=x: expected numbers");
  EXPECT_EQ(ExitCode(usage), 2);
  EXPECT_EQ(Complaint(usage), "--perm=x: expected numbers\n(`warpline --help` tells more)");

  const absl::Status server = absl::UnavailableError("draining");
  EXPECT_EQ(ExitCode(server), 1);
  EXPECT_EQ(Complaint(server), "UNAVAILABLE: draining");

  EXPECT_EQ(ExitCode(LocalError("broken")), 1);
  EXPECT_EQ(Complaint(LocalError("broken")), "broken");
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
