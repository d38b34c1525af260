#include "server/daemon/services.h"

#include <utility>

#include "cmake/version.h"
#include "server/observe/log.h"

namespace warpline {
namespace {

// The memory for cached plans: enough for some ten thousand kinds of requests.
constexpr std::size_t kPlanCacheBytes = std::size_t{32} << 20;

// Threads for work that may wait and that clients can cause in any amount: inflating messages, and lists.
// Each thread keeps a core busy, so more threads would only be slower. On a machine with few cores they would
// take time from the threads that receive calls.
constexpr int kBackgroundThreads = 2, kBackgroundNice = 10;

InfoService::OwnLimits OwnLimitsOf(const Core& core, bool has_regions) {
  InfoService::OwnLimits limits;
  limits.upload_bytes = [&core](const Caller& caller) { return core.streamed->MaxBytesOf(caller.claimant); };
  if (has_regions) {
    limits.region_bytes = [&core](const Caller& caller) { return core.regions->MaxBytesOf(caller); };
  }
  return limits;
}

}  // namespace

Services::Services(const ServerOptions& options, const Machine& machine, const Access& access,
                   bool has_regions, Core& core, Metrics& metrics)
    : plans(kPlanCacheBytes, metrics),
      compilers(options.Compilers(machine.cpus)),
      background(kBackgroundThreads, kBackgroundNice),
      kernels({.max_inline_bytes = options.max_inline_bytes,
               .max_device_seconds = options.MaxDeviceSeconds(core.is_cuda())},
              {*core.backend, plans, compilers, *core.workers, *core.admission, *core.pool, *core.scheduler,
               *core.tensors, *core.replicas, *core.streamed, *core.regions, options.send_timeout,
               access.name_of, access.owner_metrics.get()},
              metrics),
      tensors({*core.backend, *core.tensors, *core.transfers, *core.admission, *core.pool, *core.workers,
               compilers, background},
              metrics),
      regions(*core.regions, has_regions),
      info({.version = kVersion, .revision = kRevision}, options, *core.backend,
           OwnLimitsOf(core, has_regions)) {}

RpcServer::Handlers Services::Handlers() {
  const auto handle = [this](std::size_t codec) {
    return [this, codec](UnaryCall& call) { kernels.Handle(call, kernels.codecs()[codec]); };
  };
  return {.transpose = handle(0),
          .gemm = handle(1),
          .reduce = handle(2),
          .run = handle(3),
          .get_info = [this](UnaryCall& call) { info.GetInfo(call); },
          .echo = Echo,
          .tensors = &tensors,
          .regions = &regions};
}

}  // namespace warpline
