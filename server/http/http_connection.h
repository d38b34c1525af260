// One connection to the metrics port: one request, its answer, and then the end.
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
  std::string path;  // without the query after a '?'
  // The client has shown a certificate that a CA of --tls-client-ca has signed.
  bool has_certificate = false;
  std::string authorization;  // the header's value; empty if there is none
  bool accepts_gzip = false;
};

struct HttpResponse {
  std::string status = "200 OK";
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  bool is_gzip = false;  // the body is compressed
};

using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

// Speaks HTTP/1.1 over a non-blocking socket, with or without TLS. GET and HEAD go to the handler; anything
// else is refused here. The answer has "Connection: close". Not thread-safe.
class HttpConnection {
 public:
  // `tls`: null for plain HTTP. The handler outlives this. After `deadline` the connection may be destroyed
  // in any state.
  HttpConnection(UniqueFd socket, SSL_CTX* tls, const HttpHandler& handler, MonotonicTime deadline);

  int fd() const { return socket_.get(); }
  MonotonicTime deadline() const { return deadline_; }
  // The events that poll(2) must wait for before Proceed.
  short events() const { return events_; }
  // Continues as far as possible without waiting. Returns false when the connection is over and may be
  // destroyed.
  bool Proceed();

 private:
  enum class State { kReading, kWriting, kClosing };
  struct SslDeleter {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  // Return the number of bytes moved; 0 at the end of the connection or after an error; nothing if the caller
  // must wait for events_ first.
  std::optional<std::size_t> Read(char* bytes, std::size_t size);
  std::optional<std::size_t> Write();
  std::optional<std::size_t> Outcome(int result);
  // Answers the request in input_, once it is complete or cannot become valid.
  void Answer();
  void Send(const HttpResponse& response, bool with_body);
  // Reads on after the answer: if a socket is closed with unread bytes, it is reset, and the client might
  // lose the answer. Returns false when the client has ended, or sends too much.
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
