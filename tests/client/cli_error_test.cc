#include "client/cli_error.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace warpline::client
