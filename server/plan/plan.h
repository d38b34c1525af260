// A compiled request: everything about a request that does not depend on its payload.
#ifndef WARPLINE_SERVER_PLAN_PLAN_H_
#define WARPLINE_SERVER_PLAN_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "kernels/program.h"
#include "server/observe/request_kind.h"
#include "server/plan/alone_time.h"
#include "server/plan/device_program.h"

namespace warpline {

// A scalar of a step: scalar number `index` of the request, or `otherwise` if the request does not give it.
struct PlannedScalar {
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
  std::size_t index = kAbsent;
  double otherwise = 0;
};

// An integer of the request, or 0 if the request does not give it.
struct PlannedInteger {
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
  std::size_t index = kAbsent;

  std::int64_t Value(std::span<const std::int64_t> values) const {
    return index == kAbsent ? 0 : values[index];
  }
};

// A slice of a shared region. Reference number `reference` of the message names the region.
struct PlannedSlice {
  std::size_t reference = 0;
  PlannedInteger offset, call;
  std::string field;  // of the message, for errors
};

// The source of an input: payload number `payload` of the message, a slice, a resident tensor (reference
// number `reference` of the message), or upload number `upload` of the message. An input without bytes may
// have none of these.
struct PlannedInput {
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t payload = kNone;
  std::size_t reference = kNone;
  std::size_t upload = kNone;
  std::optional<PlannedSlice> slice;
};

// An output, as it is described in the response.
struct PlannedOutput {
  std::string name;  // of the step that writes it
  TensorSpec spec;
  std::size_t offset = 0;  // in the output area, if it is returned inline
  // Number of the request's sink (options.sinks) for it; kInline if there is none.
  static constexpr int kInline = -1;
  int sink = kInline;
  std::optional<PlannedSlice> slice;  // if the sink names one
  PlannedScalar ttl;                  // seconds; lease of the resident tensor that the sink makes
  bool streamed = false;              // the client fetches it from the device in separate calls

  bool is_inline() const { return sink == kInline; }
  bool is_resident() const { return sink != kInline && !slice.has_value(); }
};

// The scalars of a step whose kernels use them. Their values are not part of the plan.
struct PlannedScalars {
  PlannedScalar alpha, beta;  // as in StepScalars
  bool integers = false;      // the step computes in integers, so the values are integers
  // A fixed integer of the plan itself, which is used as alpha.
  std::optional<std::int64_t> integer;
};

// The values of the scalars, in the same order.
using ScalarValues = absl::InlinedVector<StepScalars, 1>;

// Immutable except for its measured time (`alone`). Shared by all requests that differ only in payloads and
// scalar values, by the jobs in flight, and by the cache. It holds no data of any owner.
struct Plan {
  RequestKind kind = RequestKind::kRun;
  Program program;  // without values of scalars: Step::scalars has its defaults
  MemoryPlan memory;
  std::shared_ptr<const DeviceProgram> compiled;  // compiled by the backend
  double device_seconds = 0;                      // the estimated cost
  AloneTime alone;                                // the measured cost
  // The bytes of a device's pool that the program uses while it runs (CompiledProgram).
  std::size_t device_bytes = 0;
  int max_parts = 1;                 // how many idle devices can share it (CompiledProgram)
  bool reports = false;              // the response names the variant that ran for each step
  std::vector<PlannedInput> inputs;  // of the program, in their order
  // ScalarCount values for each step, in the order of the steps.
  std::vector<PlannedScalars> scalars;
  std::vector<PlannedOutput> outputs;

  // Only used if the shape of some output is known only after the run. For each output: the place in the
  // output area of the size of its first axis, or kNoCount if its shape is known before. Such a program
  // leaves its outputs in memory of their own on the device, and a second plan copies them to their
  // destinations (CopyPlan).
  static constexpr std::size_t kNoCount = static_cast<std::size_t>(-1);
  std::vector<std::size_t> counts;

  // The most host memory that the second plan needs. It is admitted together with the first plan, so that the
  // second one cannot be refused after the first has run.
  std::size_t copied_bytes = 0;

  std::size_t num_uploads = 0;

  // The bytes of the program's inputs and outputs together, wherever they are.
  std::size_t tensor_bytes = 0;

  // Bytes of host memory that are held from admission until the result has been read.
  std::size_t HostBytes() const { return memory.input_bytes + memory.output_bytes + copied_bytes; }
  // Returns whether some of its arrays are transferred in separate calls.
  bool Streams() const;
  bool IsCounted() const { return !counts.empty(); }
};

using PlanPtr = std::shared_ptr<const Plan>;

// Makes the part of a plan that follows from the program and from which of its tensors have their own memory.
Plan MakePlan(Program program, const OwnMemory& own = {});

// Returns what ran for each step of the request, given the variants that ran for the steps of its program:
// one name, or several joined by '+' without adjacent repetitions, or "view" if nothing ran for the step.
std::vector<std::string> VariantsByPart(const Program& program, std::span<const std::string_view> variants);

// Returns the value of one scalar. `values` are the scalars of a request, in their order.
double ValueOf(const PlannedScalar& planned, std::span<const double> values);

// Returns the scalars of one request. `values` are the scalars of the request, in their order.
ScalarValues ScalarsOf(std::span<const PlannedScalars> planned, std::span<const double> values);

}  // namespace warpline

#endif  // WARPLINE_SERVER_PLAN_PLAN_H_
