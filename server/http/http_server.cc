#include "server/http/http_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/clock.h"
#include "server/base/listener.h"
#include "server/base/token_bucket.h"
#include "server/http/gzip.h"
#include "server/http/http_connection.h"

namespace warpline {
namespace {

// How many descriptors are reserved for connections that arrive when the process has none left.
constexpr std::size_t kReserve = 4;
constexpr TokenBucket::Options kFreshTexts{.capacity = 50, .per_second = 25};
// How many connections are accepted before the existing ones are served again.
constexpr int kAcceptBatch = 16;
constexpr absl::Duration kConnectionTime = absl::Seconds(10);
// How long accepting stops when the process has no descriptor left.
constexpr absl::Duration kPause = absl::Milliseconds(100);

}  // namespace

struct HttpServer::Impl {
  Impl(Listener listener, UniqueFd wake, const CertificateStore* certificates, Pages pages,
       std::size_t max_connections)
      : listener(std::move(listener)),
        wake(std::move(wake)),
        certificates(certificates),
        pages(std::move(pages)),
        max_connections(max_connections) {
    // Before the daemon reports that it is ready: after that, others may use up all descriptors.
    Refill();
    thread = std::thread([this] { Loop(); });
  }
  ~Impl() {
    const std::uint64_t one = 1;
    static_cast<void>(!write(wake.get(), &one, sizeof(one)));
    thread.join();
  }

  bool MayReadMetrics(const HttpRequest& request) const {
    const bool verifies = certificates != nullptr && certificates->verifies_clients();
    if (!verifies && pages.knows == nullptr) return true;
    return request.has_certificate || (pages.knows != nullptr && pages.knows(request.authorization));
  }

  HttpResponse Answer(const HttpRequest& request) {
    const auto probed = [](bool is_well) -> HttpResponse {
      if (is_well) return {.body = "ok\n"};
      return {.status = "503 Service Unavailable", .body = "not serving\n"};
    };
    if (request.path == "/healthz") return probed(pages.alive());
    if (request.path == "/readyz") return probed(pages.ready());
    if (request.path != "/metrics") return {.status = "404 Not Found"};
    if (!MayReadMetrics(request)) {
      return pages.knows != nullptr
                 ? HttpResponse{.status = "401 Unauthorized",
                                .body = "/metrics needs a token of --tokens: Authorization: Bearer TOKEN\n"}
                 : HttpResponse{.status = "403 Forbidden",
                                .body =
                                    "/metrics needs a client certificate that a CA of --tls-client-ca has "
                                    "signed\n"};
    }
    const std::string& current = CurrentText();
    HttpResponse response{.type = "text/plain; version=0.0.4; charset=utf-8"};
    if (request.accepts_gzip && zipped.empty()) zipped = Gzip(current);
    response.is_gzip = request.accepts_gzip && !zipped.empty();
    response.body = response.is_gzip ? zipped : current;
    return response;
  }

  const std::string& CurrentText() {
    if (fresh_texts.Take(MonotonicClock::now()) || text.empty()) {
      text = pages.metrics();
      zipped.clear();
    }
    return text;
  }

  // Returns null without TLS, or if there is no memory for it.
  SSL_CTX* CurrentContext() {
    if (certificates == nullptr) return nullptr;
    std::shared_ptr<const Certificates> current = certificates->current();
    if (current == context_of) return context.get();
    SslContext next = NewServerContext(*current);
    if (next == nullptr) return nullptr;
    context = std::move(next);
    context_of = std::move(current);
    return context.get();
  }

  void Accept(int listening) {
    for (int taken = 0; taken < kAcceptBatch; ++taken) {
      UniqueFd socket(accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket.ok()) {
        const bool out_of_descriptors =
            errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        if (out_of_descriptors && !reserve.empty()) {
          reserve.pop_back();  // closes it
          continue;
        }
        if (out_of_descriptors) accept_from = After(kPause);
        if (out_of_descriptors || errno == EAGAIN) return;
        continue;  // the error concerns only this connection
      }
      if (connections.size() >= max_connections) connections.pop_front();
      SSL_CTX* const tls = CurrentContext();
      if (certificates != nullptr && tls == nullptr) continue;  // never in plaintext instead
      connections.emplace_back(std::move(socket), tls, handler, After(kConnectionTime));
    }
  }

  void Refill() {
    while (reserve.size() < kReserve) {
      UniqueFd fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (!fd.ok()) return;
      reserve.push_back(std::move(fd));
    }
  }

  void Loop() {
    std::vector<pollfd> polled;
    for (;;) {
      const MonotonicTime now = MonotonicClock::now();
      Refill();
      // The oldest connections are at the front.
      while (!connections.empty() && connections.front().deadline() <= now) connections.pop_front();
      const bool accepts = now >= accept_from;
      polled = {{.fd = wake.get(), .events = POLLIN, .revents = 0}};
      for (const UniqueFd& socket : listener.sockets()) {
        polled.push_back({.fd = accepts ? socket.get() : -1, .events = POLLIN, .revents = 0});
      }
      for (const HttpConnection& connection : connections) {
        polled.push_back({.fd = connection.fd(), .events = connection.events(), .revents = 0});
      }
      MonotonicTime until = connections.empty() ? kNever : connections.front().deadline();
      if (!accepts) until = std::min(until, accept_from);
      poll(polled.data(), polled.size(), TimeoutMs(until - now, until));
      if (polled[0].revents != 0) return;
      const std::size_t first = 1 + listener.sockets().size();
      std::size_t next = first;
      for (auto connection = connections.begin(); connection != connections.end(); ++next) {
        const bool goes_on = polled[next].revents == 0 || connection->Proceed();
        connection = goes_on ? std::next(connection) : connections.erase(connection);
      }
      for (std::size_t i = 1; i < first; ++i) {
        if (polled[i].revents != 0) Accept(polled[i].fd);
      }
    }
  }

  static int TimeoutMs(MonotonicClock::duration left, MonotonicTime until) {
    if (until == kNever) return -1;
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
  }

  const Listener listener;
  const UniqueFd wake;
  const CertificateStore* const certificates;
  const Pages pages;
  const std::size_t max_connections;
  const HttpHandler handler = [this](const HttpRequest& request) { return Answer(request); };
  // Only the thread uses the members from here to `zipped`.
  std::shared_ptr<const Certificates> context_of;
  SslContext context;
  std::list<HttpConnection> connections;
  std::vector<UniqueFd> reserve;
  MonotonicTime accept_from;
  TokenBucket fresh_texts{kFreshTexts, MonotonicClock::now()};
  std::string text;    // of /metrics
  std::string zipped;  // the same, once somebody has asked for it; empty before
  std::thread thread;  // last, because it uses the other members
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(Listener listener,
                                                              const CertificateStore* certificates,
                                                              Pages pages, std::size_t max_connections) {
  RETURN_IF_ERROR(listener.Listen());
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.ok()) {
    return absl::UnavailableError(
        absl::StrCat("--metrics-listen: no descriptor left: ", std::strerror(errno)));
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::make_unique<Impl>(
      std::move(listener), std::move(wake), certificates, std::move(pages), max_connections)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;
const std::string& HttpServer::address() const { return impl_->listener.address(); }

}  // namespace warpline
