#include "kernels/program.h"

#include <algorithm>

#include "kernels/align.h"

namespace warpline {
namespace {

// Returns the next possible offset of a tensor.
std::size_t NextPlace(std::size_t bytes) { return AlignUp(bytes, kTensorAlignment); }

// The steps during which a tensor must be in memory: from the one that writes it to the last one that reads
// it.
struct Lifetime {
  int tensor = 0;
  int first = 0, last = 0;
  std::size_t bytes = 0;
  std::size_t offset = 0;

  bool Overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

std::vector<Lifetime> Intermediates(const Program& program, const std::vector<Placement>& places) {
  std::vector<Lifetime> lifetimes;
  std::vector<int> index(program.tensors.size(), -1);
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    const auto now = static_cast<int>(i);
    for (int input : step.inputs) {
      if (index[input] >= 0) lifetimes[index[input]].last = now;
    }
    const auto add = [&](int output) {
      if (places[output].area != Area::kScratch) return;
      if (index[output] >= 0) return;  // a further part, which is written before the first reader
      index[output] = static_cast<int>(lifetimes.size());
      lifetimes.push_back({output, now, now, NextPlace(program.tensors[output].bytes), 0});
    };
    add(step.output);
    for (const int output : step.further) add(output);
  }
  return lifetimes;
}

// Gives each tensor the lowest offset that is free during its lifetime, the largest tensors first. The result
// is close to the minimum memory, which would be as hard to find as bin packing. Returns the total bytes.
std::size_t PlaceIntermediates(std::vector<Lifetime>& lifetimes) {
  std::stable_sort(lifetimes.begin(), lifetimes.end(),
                   [](const Lifetime& a, const Lifetime& b) { return a.bytes > b.bytes; });
  std::size_t total = 0;
  std::vector<const Lifetime*> placed;  // by offset
  for (Lifetime& tensor : lifetimes) {
    for (const Lifetime* other : placed) {
      if (!tensor.Overlaps(*other)) continue;
      if (tensor.offset + tensor.bytes <= other->offset) break;  // fits before it
      tensor.offset = std::max(tensor.offset, other->offset + other->bytes);
    }
    total = std::max(total, tensor.offset + tensor.bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), &tensor,
                         [](const Lifetime* a, const Lifetime* b) { return a->offset < b->offset; }),
        &tensor);
  }
  return total;
}

}  // namespace

bool MemoryPlan::Has(Area area) const {
  return std::any_of(tensors.begin(), tensors.end(),
                     [area](const Placement& place) { return place.area == area; });
}

MemoryPlan PlanMemory(const Program& program, const OwnMemory& own) {
  const auto has = [](const std::vector<int>& list, int tensor) {
    return std::find(list.begin(), list.end(), tensor) != list.end();
  };
  MemoryPlan plan;
  plan.tensors.resize(program.tensors.size());
  plan.scalars.resize(program.steps.size(), 0);
  const auto place = [&](int tensor, Area area, std::size_t& end) {
    if (has(own.resident, tensor)) {
      plan.tensors[tensor] = {Area::kResident, 0};
      return;
    }
    const bool shared = has(own.shared, tensor);
    std::size_t& taken = shared ? plan.shared_bytes : end;
    plan.tensors[tensor] = {shared ? Area::kShared : area, NextPlace(taken)};
    taken = NextPlace(taken) + program.tensors[tensor].bytes;
  };
  for (int i = 0; i < program.num_inputs; ++i) place(i, Area::kInput, plan.input_bytes);
  for (int output : program.outputs) place(output, Area::kOutput, plan.output_bytes);
  std::vector<Lifetime> intermediates = Intermediates(program, plan.tensors);
  plan.scratch_bytes = PlaceIntermediates(intermediates);
  for (const Lifetime& tensor : intermediates) plan.tensors[tensor.tensor].offset = tensor.offset;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const int count = ScalarCount(program.steps[i].problem);
    if (count == 0) continue;
    plan.scalars[i] = NextPlace(plan.input_bytes);
    plan.input_bytes = plan.scalars[i] + static_cast<std::size_t>(count) * sizeof(StepScalars);
  }
  return plan;
}

}  // namespace warpline
