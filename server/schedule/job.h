// A request inside the engine, and what becomes of it.
#ifndef WARPLINE_SERVER_SCHEDULE_JOB_H_
#define WARPLINE_SERVER_SCHEDULE_JOB_H_

#include <atomic>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kernels/program.h"
#include "server/memory/staging_pool.h"
#include "server/observe/nvtx.h"
#include "server/schedule/admission.h"

namespace warpline {

// Wall time of the stages. Unit: seconds.
struct StageSeconds {
  double convert = 0, admission = 0, queue = 0, stage = 0, device = 0;
};

// The end of a job. On success `output` holds the program's outputs as its MemoryPlan places them; it keeps
// its staging slot until destroyed, the job's lane is free already.
struct Result {
  absl::Status status;
  StagingSlot output;
  std::vector<std::string_view> variants;
  int device = 0;
  StageSeconds seconds;
};

// An admitted request. `program` is valid and fits the backend; `plan` and `signature` belong to it.
struct Job {
  Program program;
  MemoryPlan plan;
  std::string signature;
  double device_seconds = 0;  // as estimated (Backend::EstimateSeconds)
  // Writes the payload of input i at its place in the region. Called once, on an engine thread, before
  // `done`; must not block.
  absl::AnyInvocable<void(std::span<std::byte> input_region)> fill_inputs;
  absl::Time deadline = absl::InfiniteFuture();
  // Set by the owner when nobody waits for the result any more; lives until `done` has been called.
  const std::atomic<bool>* cancelled = nullptr;
  StageSeconds seconds;
  Ticket ticket;
  [[no_unique_address]] nvtx::RequestNumber number;  // for its ranges
  // Called exactly once, from any thread; must not block.
  absl::AnyInvocable<void(Result)> done;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_JOB_H_
