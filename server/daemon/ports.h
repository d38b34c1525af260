// The addresses of the server, taken before anything that takes long.
#ifndef WARPLINE_SERVER_DAEMON_PORTS_H_
#define WARPLINE_SERVER_DAEMON_PORTS_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/listener.h"
#include "server/settings/options.h"

namespace warpline {

struct Ports {
  // Takes all addresses; nobody listens on them yet. An address that another process uses is an error before
  // the devices are opened, which takes seconds. Errors are those of Listener::Bind.
  static absl::StatusOr<Ports> Bind(const ServerOptions& options);

  std::vector<Listener> grpc, proxies;
  std::vector<Listener> regions;  // empty: the server has no shared regions
  std::vector<Listener> metrics;  // at most one
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DAEMON_PORTS_H_
