// The devices, and all memory and queues that requests pass before they reach a device.
#ifndef WARPLINE_SERVER_DAEMON_CORE_H_
#define WARPLINE_SERVER_DAEMON_CORE_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "server/base/worker_pool.h"
#include "server/daemon/access.h"
#include "server/daemon/device_failure.h"
#include "server/device/backend.h"
#include "server/device/watchdog.h"
#include "server/memory/buffer.h"
#include "server/memory/staging_pool.h"
#include "server/observe/metrics.h"
#include "server/schedule/admission.h"
#include "server/schedule/fair_budget.h"
#include "server/schedule/scheduler.h"
#include "server/settings/options.h"
#include "server/store/region_store.h"
#include "server/store/replicas.h"
#include "server/store/streamed_call.h"
#include "server/store/tensor_store.h"

namespace warpline {

// The part of the machine that the process may use.
struct Machine {
  int cpus = 1;
  std::int64_t descriptors = 0;

  // Each region has a connection, and at first also a memfd. Together they may use an eighth of all
  // descriptors, which ServerOptions::MaxConnections leaves free.
  std::size_t MaxRegions() const;
};

// The parts in the order of their construction; each is destroyed before those that it uses. Neither copied
// nor moved.
struct Core {
  // The access, the failure object and the metrics outlive the result.
  static absl::StatusOr<std::unique_ptr<Core>> Create(const ServerOptions& options, const Machine& machine,
                                                      const Access& access, DeviceFailure& failure,
                                                      Metrics& metrics);
  bool is_cuda() const { return backend->name() == "cuda"; }

  // Null on the CPU: a job may take long there if others use the cores, but it always ends.
  std::unique_ptr<DeviceWatchdog> watchdog;
  std::unique_ptr<Backend> backend;
  Buffer staging_memory;
  std::optional<StagingPool> pool;
  std::optional<Admission> admission;
  std::optional<FairBudget> transfers;  // bytes of Put and Get in progress
  std::optional<Replicas> replicas;
  std::optional<StreamedCalls> streamed;
  std::optional<TensorStore> tensors;
  std::int64_t region_bytes = 0;  // of all regions together
  std::optional<RegionStore> regions;
  std::optional<WorkerPool> workers;
  std::unique_ptr<Scheduler> scheduler;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DAEMON_CORE_H_
