#include "client/src/region_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "tests/testing/status_matchers.h"

namespace warpline::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::warpline::testing::IsOkAndHolds;
using ::warpline::testing::StatusIs;

TEST(RegionSocketTest, LiesBesideTheSocketOfTheServer) {
  EXPECT_THAT(RegionSocketPath("unix:/run/w.sock", ""), IsOkAndHolds("/run/w.sock.regions"));
  EXPECT_THAT(RegionSocketPath("unix:///run/w.sock", ""), IsOkAndHolds("/run/w.sock.regions"));
  EXPECT_THAT(RegionSocketPath("unix:w.sock", ""), IsOkAndHolds("w.sock.regions"));
  EXPECT_THAT(RegionSocketPath("unix:/run/w.sock", "/run/other"), IsOkAndHolds("/run/other"));
  EXPECT_THAT(RegionSocketPath("localhost:50051", "/run/other"), IsOkAndHolds("/run/other"));
}

TEST(RegionSocketTest, IsNotKnownOfOtherTargets) {
  for (const char* target : {"localhost:50051", "unix:", "unix-abstract:w", "dns:///host:1"}) {
    EXPECT_THAT(RegionSocketPath(target, ""),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr(target), HasSubstr("ClientOptions::region_socket"))));
  }
}

TEST(RegionSocketTest, SaysWhereNobodyListens) {
  EXPECT_THAT(RegionSocket::Connect("/tmp/there is no such socket", absl::Now() + absl::Seconds(5)).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("/tmp/there is no such socket")));
  EXPECT_THAT(
      RegionSocket::Connect(std::string(200, 'x'), absl::Now() + absl::Seconds(5)).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("200 bytes; a socket's has at most 107")));
}

}  // namespace
}  // namespace warpline::client
