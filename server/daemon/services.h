// The parts that answer calls, by service.
#ifndef WARPLINE_SERVER_DAEMON_SERVICES_H_
#define WARPLINE_SERVER_DAEMON_SERVICES_H_

#include <string>
#include <vector>

#include "server/base/worker_pool.h"
#include "server/daemon/access.h"
#include "server/daemon/core.h"
#include "server/observe/metrics.h"
#include "server/plan/plan_cache.h"
#include "server/rpc/info_service.h"
#include "server/rpc/kernel_service.h"
#include "server/rpc/region_service.h"
#include "server/rpc/rpc_server.h"
#include "server/rpc/tensor_service.h"
#include "server/schedule/fair_workers.h"
#include "server/settings/options.h"

namespace warpline {

// The core and the metrics outlive this. Neither copied nor moved.
struct Services {
  Services(const ServerOptions& options, const Machine& machine, const Access& access, bool has_regions,
           Core& core, Metrics& metrics);
  // Returns handlers that use these services.
  RpcServer::Handlers Handlers();

  PlanCache plans;
  FairWorkers compilers;
  FairWorkers background;
  KernelService kernels;
  TensorService tensors;
  RegionService regions;
  InfoService info;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DAEMON_SERVICES_H_
