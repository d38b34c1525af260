// A request compiled once: everything about it that does not depend on its payload.
#ifndef WARPLINE_SERVER_PLAN_PLAN_H_
#define WARPLINE_SERVER_PLAN_PLAN_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "kernels/program.h"

namespace warpline {

// An output as the response names it.
struct PlannedOutput {
  std::string name;  // of the step that writes it; empty where a request has one unnamed result
  TensorSpec spec;
  std::size_t offset = 0;  // in the output region
};

// Immutable and shared: by the requests that are the same but for their payloads, by the jobs in flight, and
// by the cache. Holds no owner's data but scalars.
struct Plan {
  Program program;
  MemoryPlan memory;
  std::string signature;      // the key of graph caches
  double device_seconds = 0;  // an estimate of what it costs
  // What it takes of a device's pool while it runs (Backend::DeviceBytes).
  std::size_t device_bytes = 0;
  bool stateless = false;  // any lane runs it equally well (Backend::RunsWithoutState)
  // Input i of the program is payload payloads[i] of the message, in the order of the message; kNoPayload if
  // it has no bytes, for which a message needs no payload.
  static constexpr std::size_t kNoPayload = static_cast<std::size_t>(-1);
  std::vector<std::size_t> payloads;
  std::vector<PlannedOutput> outputs;

  // Held in host memory from admission until the result has been read.
  std::size_t HostBytes() const { return memory.input_bytes + memory.output_bytes; }
};

using PlanPtr = std::shared_ptr<const Plan>;

// The part of a plan that follows from the program alone.
Plan MakePlan(Program program);

}  // namespace warpline

#endif  // WARPLINE_SERVER_PLAN_PLAN_H_
