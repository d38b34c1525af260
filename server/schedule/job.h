// A request inside the engine, and what becomes of it.
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

namespace warpline {

// Durations of the phases of a request. Unit: seconds.
struct PhaseSeconds {
  double plan = 0, admission = 0, queue = 0, copy_in = 0, device = 0;
};

// The end of a job. On success `output` holds the program's outputs as its MemoryPlan places them, and
// `bindings` the memory of those that have their own. The slot,
// and the ticket that pays for it, stay taken until they are destroyed, which is when the client has read the
// result; the job's lane is free already.
struct Result {
  absl::Status status;
  StagingSlot output;
  Bindings bindings;
  Ticket ticket;
  VariantNames variants;
  int device = 0;
  PhaseSeconds seconds;
};

// An admitted request.
struct Job {
  PlanPtr plan;
  // ScalarCount of them for each step of the plan, in the order of the steps.
  ScalarValues scalars;
  Bindings bindings;  // of each input and output of the plan
  // The device that has to run the job: where most bytes of its resident operands lie, or where its results
  // are to stay. Nothing if any may.
  std::optional<int> device;
  // The memory that copies of operands take there which lie on other devices.
  std::size_t peer_bytes = 0;
  // Finds memory for resident outputs on the device that the job has got. Called once, before the launch, if
  // there are any.
  absl::AnyInvocable<absl::Status(int device, Bindings& bindings) const> find_sinks;
  std::size_t sink_bytes = 0;  // that it will take
  // Writes part `part` of `parts` of the payloads into the input area. Parts may be written by several
  // threads at once. Called for each part at most once, before `done`, and not for a job that ends early.
  absl::AnyInvocable<void(std::span<std::byte> input_area, int part, int parts) const> copy_in;
  Caller caller;
  double weight = 1;  // of the owner; the scheduler asks for it
  // The device time that the claimant is charged until it is known what the job takes. The scheduler sets it.
  double expected_seconds = 0;
  // The thread that submits it has others to receive: it should not wait for this one.
  bool crowded = false;
  MonotonicTime deadline = kNever;
  // Set by whoever submitted the job when nobody waits for the result any more. Lives until `done` has been
  // called. May be null.
  const std::atomic<bool>* cancelled = nullptr;
  PhaseSeconds seconds;
  Ticket ticket;
  [[no_unique_address]] nvtx::RequestNumber number;  // for its ranges
  std::string_view request_id;                       // valid until `done` has been called
  // Called exactly once, from any thread; must not block.
  absl::AnyInvocable<void(Result)> done;

  // The bytes of its device's pool that the job takes while it runs.
  std::size_t device_bytes() const { return plan->device_bytes + peer_bytes; }
  // An estimate of how long the copies from other devices take.
  double peer_seconds() const { return static_cast<double>(peer_bytes) / kPeerBytesPerSecond; }
  // An estimate of how long all takes that the job does on its device.
  double device_seconds() const { return plan->device_seconds + peer_seconds(); }

 private:
  // Copies that go through the host are as fast as this, as between two H200 without peer access. NVLink was
  // ten times as fast (docs/benchmarks/2026-11-28-h200-two-gpus.md).
  static constexpr double kPeerBytesPerSecond = 38e9;
};

// Why the job must not go on; OK if it may.
absl::Status CheckAlive(const Job& job);

// Calls `done`. A successful result takes the ticket with it and is held by its reader from now on; otherwise
// everything goes back first.
void Finish(Job job, Result result);
void FinishWith(Job job, absl::Status status);

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_JOB_H_
