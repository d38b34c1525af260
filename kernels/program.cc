#include "kernels/program.h"

#include <algorithm>
#include <type_traits>

namespace warpline {
namespace {

std::size_t AlignUp(std::size_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

// Appends the object representation of a value without padding.
template <typename T>
void Append(std::string& to, const T& value) {
  static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void Append(std::string& to, const Shape& shape) {
  Append(to, static_cast<std::int8_t>(shape.rank));
  for (int i = 0; i < shape.rank; ++i) Append(to, shape[i]);
}

void AppendProblem(std::string& to, const TransposeProblem& p) {
  Append(to, p.dtype);
  Append(to, p.shape);
  for (int i = 0; i < p.shape.rank; ++i) Append(to, p.perm[i]);
}

void AppendProblem(std::string& to, const GemmProblem& p) {
  Append(to, p.dtype);
  for (std::int64_t size : {p.m, p.n, p.k, p.batch, p.lda, p.ldb, p.ldc}) Append(to, size);
  const int flags = (p.trans_a ? 1 : 0) | (p.trans_b ? 2 : 0) | (p.has_c ? 4 : 0);
  Append(to, static_cast<std::uint8_t>(flags));
  Append(to, p.precision);
}

void AppendProblem(std::string& to, const ReduceProblem& p) {
  Append(to, p.op);
  Append(to, p.dtype);
  Append(to, p.shape);
  Append(to, p.axes_mask);
}

}  // namespace

std::string Signature(const Program& program) {
  std::string key;
  key.reserve(64 + 96 * program.steps.size());
  Append(key, program.num_inputs);
  for (const Step& step : program.steps) {
    Append(key, static_cast<std::uint8_t>(step.problem.index()));
    std::visit([&](const auto& problem) { AppendProblem(key, problem); }, step.problem);
    Append(key, static_cast<std::uint8_t>(step.variant.size()));
    key += step.variant;
    for (int input : step.inputs) Append(key, input);
    Append(key, step.output);
  }
  for (int output : program.outputs) Append(key, output);
  // Sizes of the storage fix the memory plan, and with it every address inside a lane.
  for (const TensorSpec& tensor : program.tensors) Append(key, static_cast<std::uint64_t>(tensor.bytes));
  return key;
}

MemoryPlan PlanMemory(const Program& program) {
  MemoryPlan plan;
  plan.tensors.resize(program.tensors.size());
  plan.scalars.resize(program.steps.size(), 0);
  std::size_t* const region_bytes[] = {&plan.input_bytes, &plan.output_bytes, &plan.scratch_bytes};
  for (std::size_t i = 0; i < program.tensors.size(); ++i) {
    Region region = Region::kScratch;
    if (static_cast<int>(i) < program.num_inputs) {
      region = Region::kInput;
    } else if (std::find(program.outputs.begin(), program.outputs.end(), static_cast<int>(i)) !=
               program.outputs.end()) {
      region = Region::kOutput;
    }
    std::size_t& end = *region_bytes[static_cast<int>(region)];
    plan.tensors[i] = {region, AlignUp(end)};
    end = AlignUp(end) + program.tensors[i].bytes;
  }
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    if (!std::holds_alternative<GemmProblem>(program.steps[i].problem)) continue;
    plan.scalars[i] = AlignUp(plan.input_bytes);
    plan.input_bytes = plan.scalars[i] + sizeof(GemmScalars);
  }
  return plan;
}

}  // namespace warpline
