#include "server/daemon/ports.h"

#include <sys/un.h>

#include <string>
#include <string_view>
#include <utility>

#include "kernels/status_macros.h"
#include "server/observe/log.h"

namespace warpline {
namespace {

absl::StatusOr<std::vector<Listener>> BindAll(const std::vector<std::string>& addresses,
                                              std::string_view flag) {
  std::vector<Listener> listeners;
  for (const std::string& address : addresses) {
    ASSIGN_OR_RETURN(Listener listener, Listener::Bind(address, flag));
    listeners.push_back(std::move(listener));
  }
  return listeners;
}

// A path that is too long for a socket is an error only if --regions has set it.
absl::StatusOr<std::vector<Listener>> BindRegions(const ServerOptions& options) {
  std::vector<Listener> listeners;
  if (options.region_bytes == 0) return listeners;
  for (const std::string& path : options.RegionPaths()) {
    if (path != options.regions && path.size() >= sizeof(sockaddr_un::sun_path)) {
      Log("warning", "no shared regions beside this socket: the path would be too long", {{"path", path}});
      continue;
    }
    ASSIGN_OR_RETURN(Listener listener, Listener::BindForPackets(path, "the socket of regions"));
    listeners.push_back(std::move(listener));
  }
  return listeners;
}

}  // namespace

absl::StatusOr<Ports> Ports::Bind(const ServerOptions& options) {
  Ports ports;
  ASSIGN_OR_RETURN(ports.grpc, BindAll(options.listen, "--listen"));
  ASSIGN_OR_RETURN(ports.proxies, BindAll(options.proxy_listen, "--proxy-listen"));
  ASSIGN_OR_RETURN(ports.regions, BindRegions(options));
  if (!options.metrics_listen.empty()) {
    ASSIGN_OR_RETURN(ports.metrics, BindAll({options.metrics_listen}, "--metrics-listen"));
  }
  return ports;
}

}  // namespace warpline
