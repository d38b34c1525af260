// Compiles a scanned request to its plan, or finds out why this server cannot run it.
#ifndef WARPLINE_SERVER_RPC_PLAN_COMPILER_H_
#define WARPLINE_SERVER_RPC_PLAN_COMPILER_H_

#include <atomic>
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

// Knows the limits of this server, and the variants and memory of its backend. Compiling depends on nothing
// else, knows nothing about calls, and has no side effects. Thread-safe. Its arguments outlive it.
class PlanCompiler {
 public:
  struct Engine {
    const Backend& backend;
    const Admission& admission;
    const StagingPool& pool;
  };
  PlanCompiler(const Limits& limits, const Engine& engine)
      : limits_(limits),
        max_device_seconds_(limits.max_device_seconds),
        engine_(engine),
        variants_(engine.backend.Variants()) {}

  // Returns the plan with its cost. INVALID_ARGUMENT or UNIMPLEMENTED, with the field, or the error of a
  // reference.
  absl::StatusOr<PlanPtr> Compile(const Codec& codec, const ScannedMessage& message,
                                  const References& references) const;
  // Returns the same plan with its cost, or why it can never run. Errors use `step_names`, if there are any.
  absl::StatusOr<PlanPtr> Complete(const Codec& codec, Plan plan,
                                   const std::vector<std::string>& step_names = {}) const;
  // Returns whether its estimated time is within the present limit. A plan that was compiled before the limit
  // changed may be beyond it.
  bool HasTimeFor(const Plan& plan) const {
    const double most = max_device_seconds_;
    return most == 0 || plan.device_seconds <= most;
  }
  // 0: no limit.
  void SetMaxDeviceSeconds(double seconds) { max_device_seconds_ = seconds; }
  const Limits& limits() const { return limits_; }

 private:
  // Checks whether the plan can ever run.
  absl::Status CheckSize(const Codec& codec, const Plan& plan) const;

  const Limits limits_;
  std::atomic<double> max_device_seconds_;
  const Engine engine_;
  const std::vector<VariantInfo> variants_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_PLAN_COMPILER_H_
