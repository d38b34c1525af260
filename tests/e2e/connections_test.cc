// The door: what happens when there are too many connections, or too few descriptors, or two daemons for one
// path.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "server/base/unique_fd.h"
#include "tests/e2e/daemon.h"
#include "tests/e2e/http2.h"
#include "tests/e2e/requests.h"

namespace warpline {
namespace {

bool Answers(const Daemon& daemon, absl::Duration timeout = absl::Seconds(60)) {
  auto stub = v1::InfoService::NewStub(daemon.Channel());
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  v1::GetInfoResponse response;
  return stub->GetInfo(&context, v1::GetInfoRequest(), &response).ok();
}

// For a minute.
bool AwaitAnswer(const Daemon& daemon) {
  for (int i = 0; i < 600; ++i) {
    if (Answers(daemon, absl::Seconds(10))) return true;
    absl::SleepFor(absl::Milliseconds(100));
  }
  return false;
}

// Waits until the other end has closed it, and throws away what comes before that.
void AwaitClosed(const UniqueFd& fd) {
  char bytes[1024];
  ssize_t count = 1;
  while (count > 0) count = recv(fd.get(), bytes, sizeof(bytes), 0);
}

// A folder that is removed with what is in it.
class Folder {
 public:
  Folder() {
    char path[] = "/tmp/warpline-e2e-XXXXXX";
    path_ = mkdtemp(path);
  }
  ~Folder() { std::system(("rm -rf " + path_).c_str()); }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

TEST(DescriptorTest, TheListenerOutlivesADearthOfThem) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "UBSan opens a pipe to look at an object's type, and takes it for a bad one if it gets none";
#endif
  Daemon daemon;
  rlimit limit{};
  ASSERT_EQ(prlimit(daemon.pid(), RLIMIT_NOFILE, nullptr, &limit), 0);
  const rlimit few{.rlim_cur = 128, .rlim_max = limit.rlim_max};
  ASSERT_EQ(prlimit(daemon.pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  {
    std::vector<UniqueFd> idle;
    for (int i = 0; i < 160; ++i) idle.push_back(Connect(daemon.address()));
    // The last of them came when there was no descriptor left: it is refused, not left to wait.
    AwaitClosed(idle.back());
  }
  // The daemon closes its descriptors as it hears of the end of each.
  EXPECT_TRUE(AwaitAnswer(daemon));
}

TEST(DescriptorTest, TheSoftLimitIsRaised) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit before = limit;
  limit.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  Daemon daemon;  // inherits it
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_EQ(prlimit(daemon.pid(), RLIMIT_NOFILE, nullptr, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, limit.rlim_max);
}

TEST(ConnectionBoundTest, WhoIsIdleForLongestMakesRoomForAnother) {
  Daemon daemon({"--max-connections=2"});
  const UniqueFd first = Connect(daemon.address());
  Http2Client second(daemon.address());
  second.AwaitServer();  // the acceptor has come to it, and so to the first
  EXPECT_TRUE(Answers(daemon));
  AwaitClosed(first);
}

TEST(ConnectionBoundTest, OneBeyondIsRefusedWhileAllHaveCalls) {
  Daemon daemon({"--max-connections=2"});
  std::vector<std::unique_ptr<StreamCall>> calls;
  for (int i = 0; i < 2; ++i) {
    auto channel = daemon.Channel();
    calls.push_back(std::make_unique<StreamCall>(channel, kTransposeMethod));
  }
  ASSERT_TRUE(daemon.AwaitMetric("warpline_requests_in_flight", "", 2));
  AwaitClosed(Connect(daemon.address()));
  calls.clear();
  EXPECT_TRUE(AwaitAnswer(daemon));
}

TEST(UnixSocketTest, ALiveOneIsNotTakenOver) {
  const Folder folder;
  const std::string listen = "--listen=unix:" + folder.Path("socket");
  Daemon first({listen});
  EXPECT_THROW(Daemon({listen}), std::runtime_error);
  EXPECT_TRUE(Answers(first));
}

TEST(UnixSocketTest, AStaleOneIsReplacedAndIsItsOwnersAlone) {
  const Folder folder;
  const std::string path = folder.Path("socket");
  {
    const UniqueFd stale(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, sizeof(name.sun_path) - 1);
    ASSERT_EQ(bind(stale.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  }
  struct stat found {};
  {
    Daemon daemon({"--listen=unix:" + path});
    EXPECT_TRUE(Answers(daemon));
    ASSERT_EQ(stat(path.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600u);
  }
  EXPECT_NE(stat(path.c_str(), &found), 0) << "the path is still there after the daemon's end";
}

TEST(UnixSocketTest, AFileIsNotReplaced) {
  const Folder folder;
  const std::string path = folder.Path("file");
  ASSERT_EQ(std::system(("echo precious > " + path).c_str()), 0);
  EXPECT_THROW(Daemon({"--listen=unix:" + path}), std::runtime_error);
  struct stat found {};
  ASSERT_EQ(stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_size, 9);
}

TEST(ListenTest, NamesFreePortsAndSeveralAddresses) {
  const Folder folder;
  for (const std::string& listen :
       {std::string("localhost:0"), std::string("0.0.0.0:0"), "127.0.0.1:0,unix:" + folder.Path("socket")}) {
    Daemon daemon({"--listen=" + listen, "--insecure"});
    const std::string first = daemon.address().substr(0, daemon.address().find(','));
    const std::string port = first.substr(first.rfind(':') + 1);
    EXPECT_NE(port, "0");
    Http2Client client("127.0.0.1:" + port);
    EXPECT_TRUE(client.AwaitServer()) << listen;
  }
}

}  // namespace
}  // namespace warpline
