// /metrics, /healthz and /readyz on one port, over plain HTTP.
#ifndef WARPLINE_SERVER_OBSERVE_HTTP_SERVER_H_
#define WARPLINE_SERVER_OBSERVE_HTTP_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/observe/metrics.h"

namespace warpline {

class HttpServer {
 public:
  struct Probes {
    std::function<bool()> alive;  // /healthz: false asks the supervisor for a restart
    std::function<bool()> ready;  // /readyz: false takes the replica out of the load balancing
  };
  // `listen` is host:port; port 0 picks a free one. `metrics` outlives the server.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& listen, const Metrics& metrics,
                                                           Probes probes);
  ~HttpServer();
  const std::string& address() const { return address_; }

 private:
  struct Impl;
  HttpServer(std::unique_ptr<Impl> impl, std::string address);
  std::unique_ptr<Impl> impl_;
  std::string address_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_OBSERVE_HTTP_SERVER_H_
