#include "server/rpc/proxy_header.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "server/base/unique_fd.h"
#include "server/rpc/peer.h"

namespace warpline {
namespace {

using State = ProxyHeader::State;

const std::string kSignature("\r\n\r\n\0\r\nQUIT\n", 12);

std::string Header(int version_and_command, int family, const std::string& rest) {
  std::string header = kSignature;
  for (const int byte : {version_and_command, family, static_cast<int>(rest.size() / 256),
                         static_cast<int>(rest.size() % 256)}) {
    header += static_cast<char>(byte);
  }
  return header + rest;
}

// From 10.1.2.3:258 to 127.0.0.1:772, and something more that the proxy says.
const std::string kV4 =
    Header(0x21, 0x11, std::string("\x0a\x01\x02\x03\x7f\0\0\x01\x01\x02\x03\x04", 12) + "tlv");
const std::string kV6Addresses =
    "\x20\x01\x0d\xb8" + std::string(12, '\x01') + std::string(16, '\0') + "\x01\x02\x03\x04";

State Whole(ProxyHeader& header, const std::string& text) {
  State state = State::kIncomplete;
  for (std::size_t at = 0; at < text.size() && state == State::kIncomplete;) {
    const std::size_t bytes = std::min(header.missing(), text.size() - at);
    state = header.Append(text.substr(at, bytes));
    at += bytes;
  }
  return state;
}

TEST(ProxyHeaderTest, TellsTheAddressOfAClient) {
  ProxyHeader v4, v6;
  ASSERT_EQ(Whole(v4, kV4), State::kComplete);
  EXPECT_EQ(ConnectionName(*v4.source()), "ipv4:10.1.2.3:258");
  ASSERT_EQ(Whole(v6, Header(0x21, 0x21, kV6Addresses)), State::kComplete);
  EXPECT_EQ(ConnectionName(*v6.source()), "ipv6:%5B2001:db8:101:101:101:101:101:101%5D:258");
}

TEST(ProxyHeaderTest, AProxyMayConnectForItselfOrForNobodyItNames) {
  for (const std::string& text : {Header(0x20, 0x00, ""), Header(0x20, 0x11, ""), Header(0x21, 0x00, ""),
                                  Header(0x21, 0x31, std::string(216, 'x'))}) {
    ProxyHeader header;
    ASSERT_EQ(Whole(header, text), State::kComplete);
    EXPECT_FALSE(header.source().has_value());
  }
}

TEST(ProxyHeaderTest, AnythingElseIsInvalidAsSoonAsItShows) {
  for (const std::string& text :
       {std::string("PRI * HTTP/2.0\r\n"), std::string("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n"),
        std::string("\r\n\r\nx"), Header(0x11, 0x11, std::string(12, 'x')),
        Header(0x22, 0x11, std::string(12, 'x')), Header(0x21, 0x11, std::string(11, 'x')),
        Header(0x21, 0x21, std::string(35, 'x')), Header(0x21, 0x11, std::string(3000, 'x'))}) {
    ProxyHeader header;
    EXPECT_EQ(Whole(header, text), State::kInvalid) << text;
    EXPECT_EQ(header.missing(), 0u);
  }
}

TEST(ProxyHeaderTest, ReadsNothingBehindTheHeader) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  const UniqueFd server(fds[0]), client(fds[1]);
  ProxyHeader header;
  EXPECT_EQ(header.Read(server.get()), State::kIncomplete);
  ASSERT_EQ(send(client.get(), kV4.data(), 20, 0), 20);
  EXPECT_EQ(header.Read(server.get()), State::kIncomplete);
  const std::string rest = kV4.substr(20) + "PRI";
  ASSERT_EQ(send(client.get(), rest.data(), rest.size(), 0), static_cast<ssize_t>(rest.size()));
  EXPECT_EQ(header.Read(server.get()), State::kComplete);
  char next[8] = "";
  EXPECT_EQ(recv(server.get(), next, sizeof(next), 0), 3);
  EXPECT_STREQ(next, "PRI");
}

TEST(ProxyHeaderTest, TheEndOfTheConnectionIsInvalid) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  const UniqueFd server(fds[0]);
  UniqueFd(fds[1]).Reset();
  ProxyHeader header;
  EXPECT_EQ(header.Read(server.get()), State::kInvalid);
}

}  // namespace
}  // namespace warpline
