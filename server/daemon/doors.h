// The servers to which clients and scrapers connect.
#ifndef WARPLINE_SERVER_DAEMON_DOORS_H_
#define WARPLINE_SERVER_DAEMON_DOORS_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/base/worker_pool.h"
#include "server/daemon/access.h"
#include "server/daemon/core.h"
#include "server/daemon/device_failure.h"
#include "server/daemon/ports.h"
#include "server/daemon/services.h"
#include "server/http/http_server.h"
#include "server/observe/metrics.h"
#include "server/rpc/incoming_call.h"
#include "server/rpc/inflater.h"
#include "server/rpc/region_server.h"
#include "server/rpc/rpc_server.h"
#include "server/settings/options.h"

namespace warpline {

// The parts in the order of their construction. Neither copied nor moved.
struct Doors {
  // Opens them. The references outlive the result.
  static absl::StatusOr<std::unique_ptr<Doors>> Open(const ServerOptions& options, const Machine& machine,
                                                     const Access& access, Ports ports, Core& core,
                                                     Services& services, const DeviceFailure& failure,
                                                     Metrics& metrics);
  // Returns the line that tells the starter of the process that the server is ready.
  std::string ReadyLine(const Backend& backend) const;

  std::atomic<bool> ready = true;
  std::optional<CallLog> call_log;
  std::optional<Inflater> inflater;
  std::optional<WorkerPool> crew;
  std::unique_ptr<RpcServer> rpc;
  // Registering memory with the devices takes long, so it is done for one client at a time.
  WorkerPool registering{1};
  std::unique_ptr<RegionServer> regions;  // null if there are none
  std::unique_ptr<HttpServer> http;       // null without a metrics port
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DAEMON_DOORS_H_
