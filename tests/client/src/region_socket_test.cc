#include "client/src/region_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>

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
  EXPECT_THAT(RegionSocketPath("localhost:50051", "unix:/run/other"), IsOkAndHolds("/run/other"));
  EXPECT_THAT(RegionSocketPath("localhost:50051", "unix:///run/other"), IsOkAndHolds("/run/other"));
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

class RegionSocketOfOthersTest : public ::testing::Test {
 protected:
  ~RegionSocketOfOthersTest() override {
    ::close(fd_);
    ::unlink(path_.c_str());
  }
  void Listen(int type) {
    fd_ = ::socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(::listen(fd_, 1), 0);
  }
  absl::Status Connect() const {
    return RegionSocket::Connect(path_, absl::Now() + absl::Seconds(5)).status();
  }

  const std::string path_ = "/tmp/region_socket_test." + std::to_string(::getpid());
  int fd_ = -1;
};

TEST_F(RegionSocketOfOthersTest, SaysWhereTheRegionSocketOfAServerIs) {
  Listen(SOCK_STREAM);  // as that for gRPC is
  EXPECT_THAT(Connect(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  AllOf(HasSubstr(path_), HasSubstr("unix:PATH is PATH.regions"))));
}

TEST_F(RegionSocketOfOthersTest, SaysWhoMayConnect) {
  Listen(SOCK_SEQPACKET);
  EXPECT_EQ(Connect(), absl::OkStatus());
  ASSERT_EQ(::chmod(path_.c_str(), 0), 0);
  // Root may do everything, nobody may not.
  const bool is_root = ::geteuid() == 0;
  const auto become = [&](uid_t user) { return !is_root || ::seteuid(user) == 0; };
  ASSERT_TRUE(become(65534));
  const absl::Status denied = Connect();
  ASSERT_TRUE(become(0));
  EXPECT_THAT(denied, StatusIs(absl::StatusCode::kPermissionDenied,
                               AllOf(HasSubstr("Permission denied"), HasSubstr("mode 0600"))));
}

}  // namespace
}  // namespace warpline::client
