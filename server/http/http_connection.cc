#include "server/http/http_connection.h"

#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/http/gzip.h"

namespace warpline {
namespace {

// The maximum bytes of a request's first line and its headers. Browsers with many cookies stay below it.
constexpr std::size_t kMaxRequestBytes = 16 << 10;

// Limits for the bytes that a client sends after its answer. Up to kMaxRest, the client gets the answer in
// any case. After kMaxRestOfTurn, other connections are served first.
constexpr std::size_t kMaxRest = 1 << 20, kMaxRestOfTurn = 64 << 10;

// Returns the value of the first header with this name, given in lower case; empty if there is none.
std::string_view Header(std::string_view request, std::string_view name) {
  for (std::size_t at = request.find("\r\n"); at != std::string_view::npos; at = request.find("\r\n", at)) {
    at += 2;
    const std::string_view line = request.substr(at, request.find("\r\n", at) - at);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const absl::string_view found(line.data(), colon);
    if (!absl::EqualsIgnoreCase(found, {name.data(), name.size()})) continue;
    const absl::string_view value =
        absl::StripAsciiWhitespace(absl::string_view(line.data() + colon + 1, line.size() - colon - 1));
    return {value.data(), value.size()};
  }
  return {};
}

}  // namespace

HttpConnection::HttpConnection(UniqueFd socket, SSL_CTX* tls, const HttpHandler& handler,
                               MonotonicTime deadline)
    : socket_(std::move(socket)), handler_(handler), deadline_(deadline), events_(POLLIN) {
  if (tls == nullptr) return;
  ssl_.reset(SSL_new(tls));
  if (ssl_ == nullptr) {  // no memory
    state_ = State::kClosing;
    ::shutdown(socket_.get(), SHUT_RDWR);
    return;
  }
  SSL_set_fd(ssl_.get(), socket_.get());
  SSL_set_accept_state(ssl_.get());
}

std::optional<std::size_t> HttpConnection::Outcome(int result) {
  if (result > 0) return static_cast<std::size_t>(result);
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      events_ = POLLIN;
      return std::nullopt;
    case SSL_ERROR_WANT_WRITE:
      events_ = POLLOUT;
      return std::nullopt;
    default:
      return 0;
  }
}

std::optional<std::size_t> HttpConnection::Read(char* bytes, std::size_t size) {
  if (ssl_ != nullptr) {
    ERR_clear_error();  // SSL_get_error uses the list of errors
    return Outcome(SSL_read(ssl_.get(), bytes, static_cast<int>(size)));
  }
  const ssize_t count = recv(socket_.get(), bytes, size, 0);
  if (count >= 0) return static_cast<std::size_t>(count);
  if (errno != EAGAIN && errno != EINTR) return 0;
  events_ = POLLIN;
  return std::nullopt;
}

std::optional<std::size_t> HttpConnection::Write() {
  const char* const bytes = output_.data() + written_;
  const std::size_t size = output_.size() - written_;
  if (ssl_ != nullptr) {
    ERR_clear_error();
    return Outcome(SSL_write(ssl_.get(), bytes, static_cast<int>(size)));
  }
  const ssize_t count = send(socket_.get(), bytes, size, MSG_NOSIGNAL);
  if (count >= 0) return static_cast<std::size_t>(count);
  if (errno != EAGAIN && errno != EINTR) return 0;
  events_ = POLLOUT;
  return std::nullopt;
}

bool HttpConnection::Proceed() {
  while (state_ == State::kReading) {
    char buffer[4096];
    const std::optional<std::size_t> count = Read(buffer, sizeof(buffer));
    if (!count) return true;
    if (*count > 0) {
      input_.append(buffer, *count);
      Answer();
      continue;
    }
    if (ssl_ == nullptr || ERR_GET_REASON(ERR_peek_last_error()) != SSL_R_HTTP_REQUEST) return false;
    ssl_.reset();
    Send({.status = "400 Bad Request", .body = "this port speaks HTTPS\n"}, true);
  }
  while (state_ == State::kWriting) {
    const std::optional<std::size_t> count = Write();
    if (!count) return true;
    if (*count == 0) return false;
    written_ += *count;
    if (written_ < output_.size()) continue;
    if (ssl_ != nullptr) SSL_shutdown(ssl_.get());
    shutdown(socket_.get(), SHUT_WR);
    state_ = State::kClosing;
    events_ = POLLIN;
  }
  return ThrowAwayRest();
}

bool HttpConnection::ThrowAwayRest() {
  char rest[4096];
  for (std::size_t turn = 0; turn < kMaxRestOfTurn; turn += sizeof(rest)) {
    const ssize_t count = recv(socket_.get(), rest, sizeof(rest), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (count <= 0) return false;
    thrown_away_ += static_cast<std::size_t>(count);
  }
  return thrown_away_ < kMaxRest;
}

void HttpConnection::Answer() {
  // A client that speaks TLS to a plain HTTP port sends a first byte that is not a letter. Answer at once,
  // because the client waits for an answer.
  if (input_[0] < 'A' || input_[0] > 'Z') return Send({.status = "400 Bad Request"}, true);
  const bool is_whole = input_.find("\r\n\r\n") != std::string::npos;
  if (!is_whole && input_.size() < kMaxRequestBytes) return;
  if (!is_whole) return Send({.status = "431 Request Header Fields Too Large"}, true);
  const std::string_view line = std::string_view(input_).substr(0, input_.find("\r\n"));
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  const std::string_view version = last == std::string_view::npos ? "" : line.substr(last + 1);
  if (first == last || version.substr(0, 7) != "HTTP/1.") return Send({.status = "400 Bad Request"}, true);
  const std::string_view method = line.substr(0, first);
  if (method != "GET" && method != "HEAD") return Send({.status = "405 Method Not Allowed"}, true);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  HttpRequest request{.path = std::string(target.substr(0, target.find('?')))};
  request.authorization = std::string(Header(std::string_view(input_), "authorization"));
  request.has_certificate = ssl_ != nullptr && SSL_get0_peer_certificate(ssl_.get()) != nullptr &&
                            SSL_get_verify_result(ssl_.get()) == X509_V_OK;
  request.accepts_gzip = AcceptsGzip(Header(std::string_view(input_), "accept-encoding"));
  Send(handler_(request), method == "GET");
}

void HttpConnection::Send(const HttpResponse& response, bool with_body) {
  const std::string& body = response.body.empty() ? response.status + "\n" : response.body;
  const bool asks = response.status.substr(0, 3) == "401";
  output_ =
      absl::StrCat("HTTP/1.1 ", response.status, asks ? "\r\nWWW-Authenticate: Bearer" : "",
                   "\r\nContent-Type: ", response.type, response.is_gzip ? "\r\nContent-Encoding: gzip" : "",
                   "\r\nVary: Accept-Encoding\r\nContent-Length: ", body.size(),
                   "\r\nAllow: GET, HEAD\r\nConnection: close\r\n\r\n", with_body ? body : "");
  state_ = State::kWriting;
}

}  // namespace warpline
