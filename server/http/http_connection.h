// One connection to the metrics port: one request, its answer, and the end.
#ifndef WARPLINE_SERVER_HTTP_HTTP_CONNECTION_H_
#define WARPLINE_SERVER_HTTP_HTTP_CONNECTION_H_

#include <openssl/ssl.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/base/clock.h"
#include "server/base/unique_fd.h"

namespace warpline {

struct HttpRequest {
  std::string path;  // without what follows a '?'
  // The client has shown a certificate, which a CA of --tls-client-ca has signed.
  bool has_certificate = false;
  std::string authorization;  // the header; empty: there is none
};

struct HttpResponse {
  std::string status = "200 OK";
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

// Speaks HTTP/1.1 over a socket that does not block, over TLS or as it is. GET and HEAD go to the handler;
// anything else is refused here. The answer says "Connection: close". Not thread-safe.
class HttpConnection {
 public:
  // `tls`: null for plain HTTP. The handler outlives this. After `deadline` the connection may be destroyed
  // in whatever state it is.
  HttpConnection(UniqueFd socket, SSL_CTX* tls, const HttpHandler& handler, MonotonicTime deadline);

  int fd() const { return socket_.get(); }
  MonotonicTime deadline() const { return deadline_; }
  // The events that poll(2) must wait for before Proceed.
  short events() const { return events_; }
  // Goes on as far as it can without waiting. False when the connection is over and may be destroyed.
  bool Proceed();

 private:
  enum class State { kReading, kWriting, kClosing };
  struct SslDeleter {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  // Bytes that were moved; 0 at the end of the connection, or after an error of it; nothing if it would have
  // to wait, for events_.
  std::optional<std::size_t> Read(char* bytes, std::size_t size);
  std::optional<std::size_t> Write();
  std::optional<std::size_t> Outcome(int result);
  // Answers the bytes in input_, once they are a whole request or cannot become one.
  void Answer();
  void Send(const HttpResponse& response, bool with_body);
  // Reads on behind the answer: a socket that is closed with bytes unread is reset, and the client might lose
  // the answer by it. False when the client has ended, or goes on for too long.
  bool ThrowAwayRest();

  UniqueFd socket_;
  std::unique_ptr<SSL, SslDeleter> ssl_;  // null: plain HTTP
  const HttpHandler& handler_;
  const MonotonicTime deadline_;
  State state_ = State::kReading;
  short events_;
  std::string input_, output_;
  std::size_t written_ = 0;
  std::size_t thrown_away_ = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_HTTP_HTTP_CONNECTION_H_
