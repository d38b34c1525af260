// A request inside the engine, and its result.
#ifndef WARPLINE_SERVER_SCHEDULE_JOB_H_
#define WARPLINE_SERVER_SCHEDULE_JOB_H_

#include <atomic>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/base/clock.h"
#include "server/base/owner.h"
#include "server/memory/staging_pool.h"
#include "server/observe/nvtx.h"
#include "server/plan/binding.h"
#include "server/plan/device_program.h"
#include "server/plan/plan.h"
#include "server/schedule/admission.h"
#include "server/schedule/device_load.h"

namespace warpline {

// Durations of the phases of a request. Unit: seconds.
struct PhaseSeconds {
  double plan = 0, admission = 0, queue = 0, copy_in = 0, device = 0;
};

// The end of a job. On success `output` holds the program's outputs where its MemoryPlan places them, and
// `bindings` holds the memory of outputs that have their own. The slot and the ticket that pays for it stay
// in use until the Result is destroyed, which is when the client has read it. The job's lane is already free.
struct Result {
  absl::Status status;
  StagingSlot output;
  Bindings bindings;
  Ticket ticket;
  VariantNames variants;
  int device = 0;
  std::size_t peer_bytes = 0;  // Job::peer_bytes
  PhaseSeconds seconds;
};

// An admitted request.
struct Job {
  PlanPtr plan;
  // ScalarCount values for each step of the plan, in the order of the steps.
  ScalarValues scalars;
  Bindings bindings;  // one for each input and output of the plan
  // The device that must run the job. Not set if any device may run it.
  std::optional<int> device;
  // The part of that device's pool for copies of operands that lie on other devices and get no replica.
  std::size_t block_bytes = 0;
  // The bytes of operands that are copied from other devices, and an estimate of how long that takes.
  std::size_t peer_bytes = 0;
  double peer_seconds = 0;
  // Called when the job has ended well, if there are new replicas (Binding::copy).
  absl::AnyInvocable<void()> copied;
  // Finds memory for resident outputs on the device that was chosen for the job. Called once, before the
  // launch, if there are any.
  absl::AnyInvocable<absl::Status(int device, Bindings& bindings) const> find_sinks;
  std::size_t sink_bytes = 0;  // bytes that find_sinks will allocate
  // Writes part `part` of `parts` of the payloads into the input area. Several threads may write parts at the
  // same time. Called at most once for each part, and before `done`. Not called for a job that ends early.
  absl::AnyInvocable<void(std::span<std::byte> input_area, int part, int parts) const> copy_in;
  Caller caller;
  double weight = 1;  // of the owner, set by the scheduler
  // The device time that is charged to the claimant until the real time is known. The scheduler sets it.
  double expected_seconds = 0;
  // The thread that submits the job must also receive other jobs, so it should not wait for this one.
  bool crowded = false;
  MonotonicTime deadline = kNever;
  // Set by the submitter when nobody waits for the result any more. Valid until `done` has been called. May
  // be null.
  const std::atomic<bool>* cancelled = nullptr;
  PhaseSeconds seconds;
  DeviceLoad::Part load;  // set by the scheduler, once the device is known
  Ticket ticket;
  [[no_unique_address]] nvtx::RequestNumber number;  // for its NVTX ranges
  std::string_view request_id;                       // valid until `done` has been called
  // Called exactly once, from any thread; must not block.
  absl::AnyInvocable<void(Result)> done;

  // The bytes of its device's pool that the job uses while it runs.
  std::size_t device_bytes() const { return plan->device_bytes + block_bytes; }
  // An estimate of how long the whole job takes on its device.
  double device_seconds() const { return plan->device_seconds + peer_seconds; }
};

// Returns why the job must be stopped; OK if it may go on.
absl::Status CheckAlive(const Job& job);

// Calls `done`. A successful result keeps the ticket, and its reader holds it from now on. Otherwise
// everything is released first.
void Finish(Job job, Result result);
void FinishWith(Job job, absl::Status status);

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_JOB_H_
