#include "server/observe/http_server.h"

#include <CivetServer.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace warpline {
namespace {

void Reply(mg_connection* connection, const char* status, const char* type, const std::string& body) {
  mg_printf(connection, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", status, type,
            body.size());
  mg_write(connection, body.data(), body.size());
}

class MetricsHandler : public CivetHandler {
 public:
  explicit MetricsHandler(const Metrics& metrics) : metrics_(metrics) {}
  bool handleGet(CivetServer*, mg_connection* connection) override {
    Reply(connection, "200 OK", "text/plain; version=0.0.4; charset=utf-8", metrics_.Scrape());
    return true;
  }

 private:
  const Metrics& metrics_;
};

class ProbeHandler : public CivetHandler {
 public:
  explicit ProbeHandler(std::function<bool()> probe) : probe_(std::move(probe)) {}
  bool handleGet(CivetServer*, mg_connection* connection) override {
    if (probe_()) {
      Reply(connection, "200 OK", "text/plain", "ok\n");
    } else {
      Reply(connection, "503 Service Unavailable", "text/plain", "not serving\n");
    }
    return true;
  }

 private:
  std::function<bool()> probe_;
};

}  // namespace

struct HttpServer::Impl {
  Impl(const std::string& listen, const Metrics& metrics, Probes probes)
      : metrics_handler(metrics),
        alive_handler(std::move(probes.alive)),
        ready_handler(std::move(probes.ready)),
        civet(std::vector<std::string>{"listening_ports", listen, "num_threads", "4", "request_timeout_ms",
                                       "10000"}) {
    civet.addHandler("/metrics", metrics_handler);
    civet.addHandler("/healthz", alive_handler);
    civet.addHandler("/readyz", ready_handler);
  }
  // The handlers stand before the server, so that they outlive it: its destructor waits for those in use.
  MetricsHandler metrics_handler;
  ProbeHandler alive_handler;
  ProbeHandler ready_handler;
  CivetServer civet;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& listen,
                                                              const Metrics& metrics, Probes probes) {
  try {
    auto impl = std::make_unique<Impl>(listen, metrics, std::move(probes));
    const std::vector<int> ports = impl->civet.getListeningPorts();
    if (ports.empty()) {
      return absl::UnavailableError(absl::StrCat("--metrics-listen: cannot listen on ", listen));
    }
    const std::string host = listen.substr(0, listen.rfind(':'));
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl), absl::StrCat(host, ":", ports[0])));
  } catch (const CivetException&) {
    // civetweb does not tell the reason, so the message names the likely one.
    return absl::UnavailableError(
        absl::StrCat("--metrics-listen: cannot listen on ", listen, "; is the port in use?"));
  }
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl, std::string address)
    : impl_(std::move(impl)), address_(std::move(address)) {}

// civetweb's accepting thread looks whether it shall stop when a client comes, and else every two seconds
// only, which was nearly all the time that an idle daemon took to end. So a client comes, and another one
// should the first have come too early.
HttpServer::~HttpServer() {
  std::atomic<bool> stopped = false;
  std::thread visitor([&] {
    const std::size_t colon = address_.rfind(':');
    const std::string host = address_.substr(0, colon);
    const int port = std::stoi(address_.substr(colon + 1));
    char error[128];
    while (!stopped) {
      mg_close_connection(mg_connect_client(host.c_str(), port, 0, error, sizeof(error)));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  impl_->civet.close();
  stopped = true;
  visitor.join();
}

}  // namespace warpline
