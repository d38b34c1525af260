// /metrics, /healthz and /readyz on one port, over HTTP or HTTPS.
#ifndef WARPLINE_SERVER_HTTP_HTTP_SERVER_H_
#define WARPLINE_SERVER_HTTP_HTTP_SERVER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/base/listener.h"
#include "server/tls/certificate_store.h"

namespace warpline {

// One thread serves all connections and never waits for one of them. A connection may last 10 seconds. If
// there are too many, the oldest one is closed, so that slow clients do not keep others out. Some descriptors
// are reserved, so that probes are answered even if the process has none left. The text of /metrics is made
// at most 25 times a second, with bursts of 50; beyond that, clients get the last text.
class HttpServer {
 public:
  struct Pages {
    std::function<std::string()> metrics;
    std::function<bool()> alive;  // /healthz: false asks the supervisor for a restart
    std::function<bool()> ready;  // /readyz: false takes the replica out of the load balancing
    // Returns whether this authorization header allows reading /metrics. Null: there are no tokens.
    std::function<bool(const std::string& authorization)> knows;
  };
  // With `certificates`, which may be null, the port speaks
  // HTTPS. If the certificates verify clients, or there are tokens, /metrics requires either a certificate or
  // a token. The certificates outlive the server. UNAVAILABLE if the server cannot listen.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(Listener listener,
                                                           const CertificateStore* certificates, Pages pages,
                                                           std::size_t max_connections = 256);
  ~HttpServer();
  // The address in use, with the port that the system chose.
  const std::string& address() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_HTTP_HTTP_SERVER_H_
