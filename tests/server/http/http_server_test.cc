#include "server/http/http_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "server/base/unique_fd.h"
#include "server/observe/metrics.h"
#include "tests/testing/bound.h"
#include "tests/testing/connect.h"

namespace warpline {
namespace {

std::string Unzipped(const std::string& zipped) {
  std::string text(std::size_t{4} << 20, '\0');
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(zipped.data()));
  stream.avail_in = static_cast<uInt>(zipped.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

class HttpServerTest : public ::testing::Test {
 protected:
  HttpServerTest() {
    server_ = *HttpServer::Start(std::move(Bound({"127.0.0.1:0"}).front()), nullptr,
                                 {.metrics =
                                      [this] {
                                        ++texts_;
                                        return metrics_.Scrape();
                                      },
                                  .alive = [] { return true; },
                                  .ready = [] { return false; }});
  }

  UniqueFd Connect() const { return ConnectTo(server_->address()); }
  // Returns everything that comes until the server ends the connection.
  static std::string ReadAll(const UniqueFd& fd) {
    std::string reply;
    char buffer[4096];
    for (ssize_t n; (n = recv(fd.get(), buffer, sizeof(buffer), 0)) > 0;) {
      reply.append(buffer, static_cast<std::size_t>(n));
    }
    return reply;
  }
  std::string Ask(const std::string& request) const {
    const UniqueFd fd = Connect();
    EXPECT_EQ(send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    return ReadAll(fd);
  }
  static std::string FirstLine(const std::string& reply) { return reply.substr(0, reply.find("\r\n")); }
  static std::string Body(const std::string& reply) { return reply.substr(reply.find("\r\n\r\n") + 4); }

  Metrics metrics_;
  std::atomic<int> texts_ = 0;  // that were made
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AFloodOfScrapesSharesItsTexts) {
  const std::string scrape = "GET /metrics HTTP/1.1\r\n\r\n";
  for (int i = 0; i < 10; ++i) EXPECT_EQ(FirstLine(Ask(scrape)), "HTTP/1.1 200 OK");
  EXPECT_EQ(texts_, 10) << "few get fresh ones";
  std::vector<UniqueFd> unread;
  for (int i = 0; i < 400; ++i) {
    unread.push_back(Connect());
    send(unread.back().get(), scrape.data(), scrape.size(), MSG_NOSIGNAL);
  }
  EXPECT_EQ(FirstLine(Ask("GET /healthz HTTP/1.1\r\n\r\n")), "HTTP/1.1 200 OK");
  EXPECT_LT(texts_, 410);
}

TEST_F(HttpServerTest, MetricsAreCompressedForClientsThatTakeIt) {
  const auto ask = [&](const std::string& accepted) {
    return Ask("GET /metrics HTTP/1.1\r\nAccept-Encoding: " + accepted + "\r\n\r\n");
  };
  const std::string plain = Body(ask("identity"));
  for (const char* accepted : {"gzip", "deflate, GZIP;q=0.5", "*", "*;q=0, gzip"}) {
    const std::string reply = ask(accepted), body = Body(reply);
    EXPECT_NE(reply.find("\r\nContent-Encoding: gzip\r\n"), std::string::npos) << accepted;
    EXPECT_NE(reply.find("\r\nContent-Length: " + std::to_string(body.size()) + "\r\n"), std::string::npos);
    EXPECT_LT(body.size(), plain.size() / 2);
    // All but the numbers that change from scrape to scrape.
    EXPECT_EQ(Unzipped(body).substr(0, 10000), plain.substr(0, 10000));
  }
  for (const char* refused : {"gzip;q=0", "br", "", "gzip;q=x", "*, gzip;q=0"}) {
    EXPECT_EQ(ask(refused).find("Content-Encoding"), std::string::npos) << refused;
  }
}

TEST_F(HttpServerTest, AClientThatGoesOnSendingIsCutAndHoldsUpNobody) {
  const UniqueFd endless = Connect();
  const std::string request = "GET /healthz HTTP/1.1\r\n\r\n" + std::string(1 << 20, 'x');
  // It is cut at the latest when it has sent twice the bound: what is on its way counts too.
  bool cut = false;
  for (int i = 0; i < 100 && !cut; ++i) {
    cut = send(endless.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0;
    EXPECT_EQ(FirstLine(Ask("GET /healthz HTTP/1.1\r\n\r\n")), "HTTP/1.1 200 OK");
  }
  EXPECT_TRUE(cut);
}

TEST_F(HttpServerTest, AnswersItsPaths) {
  const std::string alive = Ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(FirstLine(alive), "HTTP/1.1 200 OK");
  EXPECT_EQ(Body(alive), "ok\n");
  const std::string ready = Ask("GET /readyz HTTP/1.0\r\n\r\n");
  EXPECT_EQ(FirstLine(ready), "HTTP/1.1 503 Service Unavailable");
  EXPECT_EQ(Body(ready), "not serving\n");
  const std::string metrics = Ask("GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(metrics.find("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), std::string::npos);
  EXPECT_NE(Body(metrics).find("\nwarpline_requests_in_flight 0\n"), std::string::npos);
  const std::string length = "Content-Length: " + std::to_string(Body(metrics).size()) + "\r\n";
  EXPECT_NE(metrics.find(length), std::string::npos);
}

TEST_F(HttpServerTest, HeadHasNoBody) {
  const std::string reply = Ask("HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(reply.find("Content-Length: 3\r\n"), std::string::npos);
  EXPECT_EQ(Body(reply), "");
}

TEST_F(HttpServerTest, RefusesAnythingElse) {
  EXPECT_EQ(FirstLine(Ask("GET / HTTP/1.1\r\n\r\n")), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(FirstLine(Ask("GET /metrics/../healthz HTTP/1.1\r\n\r\n")), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(FirstLine(Ask("POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n")),
            "HTTP/1.1 405 Method Not Allowed");
  for (const char* bad :
       {"\r\n\r\n", "\x16\x03\x01", "GET\r\n\r\n", "GET /metrics\r\n\r\n", "GET /metrics HTTP/2\r\n\r\n"}) {
    EXPECT_EQ(FirstLine(Ask(bad)), "HTTP/1.1 400 Bad Request") << bad;
  }
  const std::string endless = "GET /metrics HTTP/1.1\r\nCookie: " + std::string(20000, 'x');
  EXPECT_EQ(FirstLine(Ask(endless)), "HTTP/1.1 431 Request Header Fields Too Large");
}

TEST_F(HttpServerTest, TakesARequestInPieces) {
  const UniqueFd fd = Connect();
  for (const char c : std::string("GET /healthz HTTP/1.1\r\n\r\n")) {
    ASSERT_EQ(send(fd.get(), &c, 1, MSG_NOSIGNAL), 1);
  }
  EXPECT_EQ(Body(ReadAll(fd)), "ok\n");
}

TEST_F(HttpServerTest, ClientsThatSayNothingKeepNobodyOut) {
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 400; ++i) idle.push_back(Connect());
  EXPECT_EQ(Body(Ask("GET /healthz HTTP/1.1\r\n\r\n")), "ok\n");
  EXPECT_EQ(ReadAll(idle.front()), "") << "the oldest has to make room";
}

}  // namespace
}  // namespace warpline
