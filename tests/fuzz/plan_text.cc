#include "tests/fuzz/plan_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/operand_sizes.h"
#include "tests/testing/program_bytes.h"

namespace warpline::testing {
namespace {

bool IsIndex(std::size_t index, std::size_t none, std::size_t count) {
  return index == none || index < count;
}

std::string FlawOfSlice(const PlannedSlice& slice, const MessageCounts& counts) {
  if (slice.reference >= counts.references) return "a slice of a region that is not named";
  if (!IsIndex(slice.offset.index, PlannedInteger::kAbsent, counts.integers) ||
      !IsIndex(slice.call.index, PlannedInteger::kAbsent, counts.integers)) {
    return "a slice with an integer that is not there";
  }
  return "";
}

std::size_t SizeOfArea(const MemoryPlan& memory, Area area) {
  switch (area) {
    case Area::kInput:
      return memory.input_bytes;
    case Area::kOutput:
      return memory.output_bytes;
    case Area::kScratch:
      return memory.scratch_bytes;
    case Area::kShared:
      return memory.shared_bytes;
    case Area::kResident:
      break;
  }
  return 0;
}

// The steps from whose output on, and up to which, a tensor is needed.
struct Life {
  int begin = -1, end = -1;
};

std::vector<Life> LivesOf(const Program& program) {
  const auto steps = static_cast<int>(program.steps.size());
  std::vector<Life> lives(program.tensors.size());
  for (int i = 0; i < steps; ++i) {
    const Step& step = program.steps[static_cast<std::size_t>(i)];
    for (int input : step.inputs) lives[static_cast<std::size_t>(input)].end = i;
    Life& life = lives[static_cast<std::size_t>(step.output)];
    life = {life.begin < 0 ? i : life.begin, i};  // further parts come later
    for (const int output : step.further) lives[static_cast<std::size_t>(output)] = {i, i};
  }
  for (int output : program.outputs) lives[static_cast<std::size_t>(output)].end = steps;
  // Their areas are filled before the first step, and read after the last.
  for (int i = 0; i < program.num_inputs; ++i) lives[static_cast<std::size_t>(i)] = {-1, steps};
  return lives;
}

// Elements of an operand before and from the first one on.
struct Span {
  std::int64_t before = 0, from = 0;
};
Span SpanOf(const Shape& shape, const Strides& strides) {
  if (shape.Count() == 0) return {};
  Span span{.before = 0, .from = 1};
  for (int axis = 0; axis < shape.rank; ++axis) {
    const std::int64_t reach = (shape[axis] - 1) * strides[axis];
    (reach < 0 ? span.before : span.from) += std::abs(reach);
  }
  return span;
}

// Returns what a step reads of its operand i, which has this size.
Span InputSpan(const Problem& problem, std::size_t i, const OperandSize& size) {
  if (const auto* map = std::get_if<MapProblem>(&problem)) return SpanOf(map->shape, map->inputs[i].strides);
  if (const auto* put = std::get_if<PutProblem>(&problem); put != nullptr && i == 2) {
    return SpanOf(put->index_shape, put->value_strides);
  }
  if (const auto* take = std::get_if<TakeProblem>(&problem); take != nullptr && i == 0 && size.count > 0) {
    Span span = SpanOf(take->shape, take->x_strides);
    const std::int64_t reach = (take->axis_size - 1) * take->axis_stride;
    (reach < 0 ? span.before : span.from) += std::abs(reach);
    return span;
  }
  return {.before = 0, .from = size.count};
}

// The data types of the results behind the first.
std::vector<DType> FurtherTypes(const Problem& problem) {
  std::vector<DType> types;
  if (const auto* map = std::get_if<MapProblem>(&problem)) {
    for (int i = 1; i < map->ResultCount(); ++i) types.push_back(map->ResultDType(i));
  }
  if (const auto* sort = std::get_if<SortProblem>(&problem); sort != nullptr && sort->ResultCount() > 1) {
    types.push_back(DType::kI64);
  }
  if (std::holds_alternative<CompressProblem>(problem)) types.push_back(DType::kI64);
  return types;
}

bool LiesIn(const TensorSpec& tensor, std::size_t offset, const Span& span, DType dtype) {
  const std::size_t size = SizeOf(dtype);
  return static_cast<std::size_t>(span.before) * size <= offset &&
         offset + static_cast<std::size_t>(span.from) * size <= tensor.bytes;
}

// Each operand must lie in its tensor, from its offset on.
std::string FlawOfOffsets(const Program& program, const Step& step) {
  const auto* map = std::get_if<MapProblem>(&step.problem);
  const std::vector<OperandSize> sizes = InputSizes(step.problem);
  if (sizes.size() != step.inputs.size()) return "a step with another number of operands than its problem";
  if (!step.input_offsets.empty() && step.input_offsets.size() != sizes.size())
    return "operands without offsets";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Span span = InputSpan(step.problem, i, sizes[i]);
    const TensorSpec& tensor = program.tensors[static_cast<std::size_t>(step.inputs[i])];
    const std::size_t offset = step.input_offsets.empty() ? 0 : step.input_offsets[i];
    if (!LiesIn(tensor, offset, span, sizes[i].dtype)) return "an operand that is not in its tensor";
  }
  const OperandSize result = OutputSize(step.problem);
  const Span span =
      map != nullptr ? SpanOf(map->shape, map->OutStrides()) : Span{.before = 0, .from = result.count};
  const TensorSpec& tensor = program.tensors[static_cast<std::size_t>(step.output)];
  if (!LiesIn(tensor, step.output_offset, span, result.dtype)) return "a result that is not in its tensor";
  const std::vector<DType> further = FurtherTypes(step.problem);
  if (step.further.size() != further.size()) return "a step with another number of results than its problem";
  for (std::size_t i = 0; i < further.size(); ++i) {
    const TensorSpec& whole = program.tensors[static_cast<std::size_t>(step.further[i])];
    const bool is_count = std::holds_alternative<CompressProblem>(step.problem);
    if (!LiesIn(whole, 0, is_count ? Span{.before = 0, .from = 1} : span, further[i]))
      return "a further result that is not in its tensor";
  }
  return "";
}

std::string FlawOfSteps(const Program& program) {
  const std::size_t tensors = program.tensors.size();
  std::vector<bool> is_there(tensors, false), is_read(tensors, false);
  std::fill_n(is_there.begin(), program.num_inputs, true);
  for (const Step& step : program.steps) {
    for (int input : step.inputs) {
      if (input < 0 || static_cast<std::size_t>(input) >= tensors) return "a step reads no tensor";
      if (!is_there[static_cast<std::size_t>(input)]) return "a step reads what is not there yet";
      is_read[static_cast<std::size_t>(input)] = true;
    }
    std::vector<int> outputs = {step.output};
    outputs.insert(outputs.end(), step.further.begin(), step.further.end());
    for (const int output : outputs) {
      if (output < program.num_inputs || static_cast<std::size_t>(output) >= tensors) {
        return "a step writes no tensor of its own";
      }
      if (is_read[static_cast<std::size_t>(output)]) return "a step writes what was read before";
      is_there[static_cast<std::size_t>(output)] = true;
    }
    if (std::string flaw = FlawOfOffsets(program, step); !flaw.empty()) return flaw;
  }
  for (int output : program.outputs) {
    if (output < program.num_inputs || static_cast<std::size_t>(output) >= tensors)
      return "an output of no step";
  }
  return std::all_of(is_there.begin(), is_there.end(), [](bool there) { return there; })
             ? ""
             : "a tensor that nobody writes";
}

std::string FlawOfMemory(const Plan& plan) {
  const Program& program = plan.program;
  const MemoryPlan& memory = plan.memory;
  const std::vector<Life> lives = LivesOf(program);
  for (std::size_t i = 0; i < program.tensors.size(); ++i) {
    const Placement& place = memory.tensors[i];
    if (place.area == Area::kResident) continue;
    const std::size_t size = SizeOfArea(memory, place.area), bytes = program.tensors[i].bytes;
    if (place.offset % kTensorAlignment != 0) return "a tensor at an odd place";
    if (place.offset > size || bytes > size - place.offset)
      return absl::StrCat("tensor ", i, " beyond its area");
    for (std::size_t j = 0; j < i; ++j) {
      const Placement& other = memory.tensors[j];
      if (other.area != place.area || bytes == 0 || program.tensors[j].bytes == 0) continue;
      if (lives[i].begin > lives[j].end || lives[j].begin > lives[i].end) continue;
      if (place.offset < other.offset + program.tensors[j].bytes && other.offset < place.offset + bytes) {
        return absl::StrCat("tensors ", j, " and ", i, " in one place");
      }
    }
  }
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const auto count = static_cast<std::size_t>(ScalarCount(program.steps[i].problem));
    if (count == 0) continue;
    if (memory.scalars[i] > memory.input_bytes ||
        count * sizeof(StepScalars) > memory.input_bytes - memory.scalars[i]) {
      return "scalars beyond their area";
    }
  }
  return "";
}

}  // namespace

std::string Describe(const Plan& plan) {
  std::string text = ProgramBytes(plan.program);
  const auto add = [&text](auto... numbers) { (absl::StrAppend(&text, " ", numbers), ...); };
  const auto add_slice = [&](const std::optional<PlannedSlice>& slice) {
    if (!slice.has_value()) return add("-");
    add(slice->reference, slice->offset.index, slice->call.index, slice->field);
  };
  for (const TensorSpec& tensor : plan.program.tensors) {
    add(Name(tensor.dtype).data(), ToString(tensor.shape), tensor.bytes);
  }
  for (const Step& step : plan.program.steps) {
    add(step.variant, "<");
    for (int input : step.inputs) add(input);
    add(step.output);
  }
  for (int output : plan.program.outputs) add(output);
  for (const Placement& place : plan.memory.tensors) add(static_cast<int>(place.area), place.offset);
  for (std::size_t offset : plan.memory.scalars) add(offset);
  for (const PlannedInput& input : plan.inputs) {
    add(input.payload, input.reference);
    add_slice(input.slice);
  }
  for (const PlannedScalars& step : plan.scalars) {
    for (const PlannedScalar& scalar : {step.alpha, step.beta}) add(scalar.index, scalar.otherwise);
    add(static_cast<int>(step.integers), step.integer.value_or(0));
  }
  for (const PlannedOutput& output : plan.outputs) {
    add(output.name, output.offset, output.sink, output.ttl.index, output.ttl.otherwise);
    add_slice(output.slice);
  }
  add(plan.device_bytes, plan.tensor_bytes);
  return text;
}

namespace {

// How many outputs of the program are sizes of others.
std::size_t CountsOf(const Plan& plan) {
  return static_cast<std::size_t>(std::count_if(plan.counts.begin(), plan.counts.end(),
                                                [](std::size_t place) { return place != Plan::kNoCount; }));
}

}  // namespace

std::string FindFlaw(const Plan& plan, const MessageCounts& counts) {
  const Program& program = plan.program;
  if (program.num_inputs < 0 || static_cast<std::size_t>(program.num_inputs) > program.tensors.size() ||
      plan.inputs.size() != static_cast<std::size_t>(program.num_inputs) ||
      plan.outputs.size() + CountsOf(plan) != program.outputs.size() ||
      plan.memory.tensors.size() != program.tensors.size()) {
    return "counts that differ";
  }
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    const PlannedInput& input = plan.inputs[i];
    if (!IsIndex(input.payload, PlannedInput::kNone, counts.payloads)) return "a payload that is not there";
    if (!IsIndex(input.reference, PlannedInput::kNone, counts.references))
      return "a tensor that is not named";
    if (!IsIndex(input.upload, PlannedInput::kNone, plan.num_uploads)) return "an upload that is not there";
    const int sources = (input.payload != PlannedInput::kNone) + (input.reference != PlannedInput::kNone) +
                        (input.upload != PlannedInput::kNone) + input.slice.has_value();
    if (sources > 1 || (sources == 0 && program.tensors[i].bytes > 0)) return "an input without one source";
    if (!input.slice.has_value()) continue;
    if (std::string flaw = FlawOfSlice(*input.slice, counts); !flaw.empty()) return flaw;
  }
  for (const PlannedOutput& output : plan.outputs) {
    if (!IsIndex(output.ttl.index, PlannedScalar::kAbsent, counts.scalars))
      return "a lease that is not there";
    if (!output.slice.has_value()) continue;
    if (std::string flaw = FlawOfSlice(*output.slice, counts); !flaw.empty()) return flaw;
  }
  for (const PlannedScalars& step : plan.scalars) {
    for (const PlannedScalar& scalar : {step.alpha, step.beta}) {
      if (!IsIndex(scalar.index, PlannedScalar::kAbsent, counts.scalars)) return "a scalar that is not there";
    }
  }
  if (std::string flaw = FlawOfSteps(program); !flaw.empty()) return flaw;
  return FlawOfMemory(plan);
}

}  // namespace warpline::testing
