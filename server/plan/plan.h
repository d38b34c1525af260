// A request compiled once: everything about it that does not depend on its payload.
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

// A scalar of a step: number `index` of those that come with the request, or `otherwise` where the request
// leaves it out.
struct PlannedScalar {
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
  std::size_t index = kAbsent;
  double otherwise = 0;
};

// An integer that comes with the request, or 0 where the request leaves it out.
struct PlannedInteger {
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
  std::size_t index = kAbsent;

  std::int64_t Value(std::span<const std::int64_t> values) const {
    return index == kAbsent ? 0 : values[index];
  }
};

// A slice of the shared region that reference number `reference` of the message names.
struct PlannedSlice {
  std::size_t reference = 0;
  PlannedInteger offset, call;
  std::string field;  // of the message, for errors
};

// The source of an input. It is payload number `payload` of the message, a slice, a resident tensor, named
// by reference number `reference` of the message, or its upload number `upload`. An input without bytes need
// have none of them.
struct PlannedInput {
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t payload = kNone;
  std::size_t reference = kNone;
  std::size_t upload = kNone;
  std::optional<PlannedSlice> slice;
};

// An output as the response names it.
struct PlannedOutput {
  std::string name;  // of the step that writes it
  TensorSpec spec;
  std::size_t offset = 0;  // in the output area, if it is returned inline
  // Number of the request's sink (options.sinks) for it; kInline if there is none.
  static constexpr int kInline = -1;
  int sink = kInline;
  std::optional<PlannedSlice> slice;  // that the sink names
  PlannedScalar ttl;                  // of the lease that the sink asks for, in seconds, if it names none
  bool streamed = false;              // the client fetches it from its device

  bool is_inline() const { return sink == kInline; }
  bool is_resident() const { return sink != kInline && !slice.has_value(); }
};

// The scalars of a step whose kernels read any. Their values are no part of the plan.
struct PlannedScalars {
  PlannedScalar alpha, beta;  // as in StepScalars
  bool integers = false;      // the step computes in integers, and so the values are
  // An integer that the plan itself has, as alpha.
  std::optional<std::int64_t> integer;
};

// Their values, in the same order.
using ScalarValues = absl::InlinedVector<StepScalars, 1>;

// Immutable but for what is learned of its time, and shared: by the requests that are the same but for their
// payloads and the values of their scalars, by the jobs in flight, and by the cache. It holds no owner's
// data.
struct Plan {
  RequestKind kind = RequestKind::kRun;
  Program program;  // without values of scalars: Step::scalars has its defaults
  MemoryPlan memory;
  std::shared_ptr<const DeviceProgram> compiled;  // by the backend
  double device_seconds = 0;                      // an estimate of what it costs
  AloneTime alone;                                // what it costs, once it has been measured
  // The bytes that the program takes of a device's pool while it runs (CompiledProgram).
  std::size_t device_bytes = 0;
  bool reports = false;              // the response says what ran for each step
  std::vector<PlannedInput> inputs;  // of the program, in their order
  // ScalarCount of them for each step, in the order of the steps.
  std::vector<PlannedScalars> scalars;
  std::vector<PlannedOutput> outputs;

  // For each output, the place in the output area of the number of elements that its first axis has; kNoCount
  // if its shape is known before. Empty if all shapes are. Otherwise the program leaves its outputs in memory
  // of its own on the device, and a second plan brings them where they are to go (CopyPlan).
  static constexpr std::size_t kNoCount = static_cast<std::size_t>(-1);
  std::vector<std::size_t> counts;

  // The most host memory that the second plan needs. It is admitted with the first one, so that no job is
  // refused after the other has computed.
  std::size_t copied_bytes = 0;

  std::size_t num_uploads = 0;

  // The bytes of the program's inputs and outputs together, wherever they lie.
  std::size_t tensor_bytes = 0;

  // Held in host memory from admission until the result has been read.
  std::size_t HostBytes() const { return memory.input_bytes + memory.output_bytes + copied_bytes; }
  // Returns whether some of its arrays travel in calls of their own.
  bool Streams() const;
  bool IsCounted() const { return !counts.empty(); }
};

using PlanPtr = std::shared_ptr<const Plan>;

// The part of a plan that follows from the program, and from which of its tensors have memory of their own.
Plan MakePlan(Program program, const OwnMemory& own = {});

// Returns what ran for each step of the request, by the variants that ran for the steps of its program: one
// name, or several that are joined by '+', each once in a row; "view" for a step that nothing ran for.
std::vector<std::string> VariantsByPart(const Program& program, std::span<const std::string_view> variants);

// The value of one scalar: `values` are those that come with a request, in the order in which they do.
double ValueOf(const PlannedScalar& planned, std::span<const double> values);

// The scalars of one request: `values` are those that come with it, in the order in which they do.
ScalarValues ScalarsOf(std::span<const PlannedScalars> planned, std::span<const double> values);

}  // namespace warpline

#endif  // WARPLINE_SERVER_PLAN_PLAN_H_
