// The parts of the server that the calls of KernelService use.
#ifndef WARPLINE_SERVER_RPC_CALL_CONTEXT_H_
#define WARPLINE_SERVER_RPC_CALL_CONTEXT_H_

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "server/base/owner.h"
#include "server/base/worker_pool.h"
#include "server/device/backend.h"
#include "server/memory/copy_payload.h"
#include "server/memory/staging_pool.h"
#include "server/observe/metrics.h"
#include "server/observe/owner_metrics.h"
#include "server/plan/plan_cache.h"
#include "server/rpc/plan_compiler.h"
#include "server/schedule/admission.h"
#include "server/schedule/fair_budget.h"
#include "server/schedule/fair_workers.h"
#include "server/schedule/scheduler.h"
#include "server/store/region_store.h"
#include "server/store/replicas.h"
#include "server/store/streamed_call.h"
#include "server/store/tensor_store.h"

namespace warpline {

// The components that a call uses, in order.
struct CallEngine {
  const Backend& backend;
  PlanCache& plans;
  FairWorkers& compilers;  // also allocate memory, and prepare second jobs
  WorkerPool& workers;     // free memory
  Admission& admission;
  const StagingPool& pool;
  Scheduler& scheduler;
  TensorStore& tensors;
  Replicas& replicas;
  StreamedCalls& streamed;
  RegionStore& regions;
  // The lease of a streamed result.
  absl::Duration send_timeout;
  // Returns owner names for the log; null if there are no identities.
  std::function<std::string(OwnerId)> name_of;
  OwnerMetrics* owner_metrics = nullptr;  // null if there are no identities
};

// The state that all calls share. It outlives them.
struct CallContext {
  CallContext(const Limits& limits, const CallEngine& engine, Metrics& metrics);

  const CallEngine engine;
  PlanCompiler compiler;
  Metrics& metrics;
  CopySite copy_in_site;
  FairBudget compiling;  // requests
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CALL_CONTEXT_H_
