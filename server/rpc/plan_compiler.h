// From a scanned request to its plan, or to why this server does not run it.
#ifndef WARPLINE_SERVER_RPC_PLAN_COMPILER_H_
#define WARPLINE_SERVER_RPC_PLAN_COMPILER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/wire/scanner.h"
#include "server/device/backend.h"
#include "server/memory/staging_pool.h"
#include "server/plan/plan.h"
#include "server/rpc/codec/codec.h"
#include "server/schedule/admission.h"

namespace warpline {

// Knows what this server has: its limits, the variants and the memory of its backend. Compiling depends on
// nothing else, knows nothing of calls, and leaves nothing behind. Thread-safe. What it is given outlives it.
class PlanCompiler {
 public:
  struct Engine {
    const Backend& backend;
    const Admission& admission;
    const StagingPool& pool;
  };
  PlanCompiler(const Limits& limits, const Engine& engine)
      : limits_(limits), engine_(engine), variants_(engine.backend.Variants()) {}

  // The plan with its cost. INVALID_ARGUMENT or UNIMPLEMENTED, with the field, or the error of a reference.
  absl::StatusOr<PlanPtr> Compile(const Codec& codec, const ScannedMessage& message,
                                  const References& references) const;
  // The same plan with its cost, or why it can never run, for which its steps may have names.
  absl::StatusOr<PlanPtr> Complete(const Codec& codec, Plan plan,
                                   const std::vector<std::string>& step_names = {}) const;
  const Limits& limits() const { return limits_; }

 private:
  // Checks whether the plan can ever run.
  absl::Status CheckSize(const Codec& codec, const Plan& plan) const;

  const Limits limits_;
  const Engine engine_;
  const std::vector<VariantInfo> variants_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_PLAN_COMPILER_H_
