// /metrics, /healthz and /readyz on one port, over HTTP or HTTPS.
#ifndef WARPLINE_SERVER_HTTP_HTTP_SERVER_H_
#define WARPLINE_SERVER_HTTP_HTTP_SERVER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/tls/certificate_store.h"

namespace warpline {

// One thread serves all connections, none of which it waits for. A connection has 10 seconds, and when there
// are too many the oldest makes room, so that slow clients do not keep others out. Some descriptors are kept
// for it, so that probes are answered when the process has none left. The text of /metrics is made 25 times a
// second at most, and 50 times at once; beyond that clients get the last one.
class HttpServer {
 public:
  struct Pages {
    std::function<std::string()> metrics;
    std::function<bool()> alive;  // /healthz: false asks the supervisor for a restart
    std::function<bool()> ready;  // /readyz: false takes the replica out of the load balancing
    // Returns whether this authorization header lets its client read /metrics. Null: there are no tokens.
    std::function<bool(const std::string& authorization)> knows;
  };
  // `listen` is host:port; port 0 picks a free one. With `certificates`, which may be null, the port speaks
  // HTTPS. If these verify clients, or there are tokens, /metrics is only for clients that have either. The
  // certificates outlive the server. UNAVAILABLE if the address cannot be listened on, INVALID_ARGUMENT if
  // there can be no such address.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& listen,
                                                           const CertificateStore* certificates, Pages pages,
                                                           std::size_t max_connections = 256);
  ~HttpServer();
  // The address in use, with the port that was picked.
  const std::string& address() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_HTTP_HTTP_SERVER_H_
