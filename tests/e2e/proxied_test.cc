// Connections of a proxy, each of which says for whom it is (--proxy-listen).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/e2e/daemon.h"
#include "tests/e2e/http2.h"
#include "tests/e2e/requests.h"

namespace warpline {
namespace {

using ::testing::ContainsRegex;
using ::testing::Not;

constexpr std::uint8_t kData = 0, kEndStream = 1;
// Version 2, of TCP over IPv4, with 12 bytes: from 203.0.113.7:4711 to 127.0.0.1:443.
const std::string kHeader("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x07\x7f\0\0\x01\x12\x67\x01\xbb", 28);

// A call of GetInfo, whose message is empty.
void Call(Http2Client& client, std::uint32_t stream) {
  client.Headers(stream, "/warpline.v1.InfoService/GetInfo");
  client.Frame(kData, kEndStream, stream, std::string(5, '\0'));
  client.Flush();
}

class ProxiedTest : public ::testing::Test {
 protected:
  ~ProxiedTest() override { std::remove(path_.c_str()); }

  // The access log, as soon as it has something.
  std::string AwaitLog() const {
    std::string text;
    for (const absl::Time patience = absl::Now() + absl::Minutes(1);
         text.empty() && absl::Now() < patience;) {
      std::ifstream file(path_);
      text.assign(std::istreambuf_iterator<char>(file), {});
      absl::SleepFor(absl::Milliseconds(10));
    }
    return text;
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "/warpline_proxied_", ::getpid());
  const Daemon daemon_{{"--access-log=" + path_, "--proxy-listen=127.0.0.1:0"}};
};

TEST_F(ProxiedTest, ACallIsThatOfTheClientWhomTheHeaderNames) {
  Http2Client client(daemon_.proxied_address(), kHeader);
  Call(client, 1);
  EXPECT_THAT(AwaitLog(), ContainsRegex("GetInfo code=OK client=ipv4:203.0.113.7:4711 "));
}

TEST_F(ProxiedTest, WithoutAHeaderTheConnectionIsClosed) {
  const UniqueFd fd = Connect(daemon_.proxied_address());
  ASSERT_EQ(send(fd.get(), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24, MSG_NOSIGNAL), 24);
  char byte = 0;
  EXPECT_LE(recv(fd.get(), &byte, 1, 0), 0);
}

TEST_F(ProxiedTest, ConnectionsThatSayNothingMakeRoomForOthers) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(Connect(daemon_.proxied_address()));
  Http2Client client(daemon_.proxied_address(), kHeader);
  Call(client, 1);
  EXPECT_THAT(AwaitLog(), ContainsRegex("GetInfo code=OK client=ipv4:203.0.113.7:4711 "));
}

TEST_F(ProxiedTest, WhoSaysNothingIsClosedAfterASpell) {
  const UniqueFd fd = Connect(daemon_.proxied_address());
  char byte = 0;
  EXPECT_EQ(recv(fd.get(), &byte, 1, 0), 0);  // which gives up after a minute
}

TEST_F(ProxiedTest, ElsewhereAHeaderIsNotReadButTakenForWhatIsNoHttp2) {
  Http2Client client(daemon_.address(), kHeader);
  Call(client, 1);
  while (client.AwaitServer()) {
  }
  const auto stub = v1::InfoService::NewStub(daemon_.Channel());
  grpc::ClientContext context;
  v1::GetInfoResponse response;
  ASSERT_TRUE(stub->GetInfo(&context, v1::GetInfoRequest(), &response).ok());
  EXPECT_THAT(AwaitLog(), Not(ContainsRegex("203.0.113.7")));
}

}  // namespace
}  // namespace warpline
