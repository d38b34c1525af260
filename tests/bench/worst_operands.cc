// The operands for which functions of maps take longest, against what the server charges for them:
// worst_operands [cpu|cuda [TYPE]], for example worst_operands cuda c64
//
// Each function is computed for each data type, with operands that are the same in all elements: the largest,
// the smallest and denormal numbers, and numbers that are far apart. The time of a map of the
// results alone is taken off. The estimate must be at least a third of the time, whatever the operands, as
// --max-device-seconds promises; otherwise the exit code is 1.
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "kernels/map/operations.h"
#include "tests/bench/timed_lane.h"
#include "tests/testing/element.h"

namespace warpline {
namespace {

using bench::TimedLane;

// Equal functions in one map, so that their time is more than that of reading and writing.
constexpr int kFunctions = 8;
constexpr double kMaxRatio = 3;

std::vector<double> NumbersOf(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  if (IsInteger(dtype))
    return IsSigned(dtype) ? std::vector<double>{0, 1, -1, 3, -7, 100} : std::vector<double>{0, 1, 3, 100};
  const bool is_half = dtype == DType::kF16, is_double = PartOf(dtype) == DType::kF64;
  const double most = is_half ? 65504 : is_double ? std::numeric_limits<double>::max() : 3e38;
  const double least = is_half ? 6e-8 : is_double ? 4.9e-324 : 1.4e-45;
  return {1,         0.1,
          -7.5,      most,
          most / 3,  least,
          3 * least, is_half ? 1e-4 : is_double ? 1e-300 : 1e-37,
          1e3,       std::numeric_limits<double>::infinity()};
}

// A program of one map over broadcast operands, and a reduction that leaves one byte of its result. Without
// an operation the operands stand for its results.
Program MapOf(std::optional<MapOp> op, DType dtype, std::int64_t count) {
  const int operands = op.has_value() ? RowOf(*op).operands : 1;
  MapProblem map{
      .dtype = dtype, .shape = {count}, .inputs = {}, .nodes = {}, .further = {}, .out_strides = {}};
  Program program;
  const int inputs = kFunctions + 2;  // first operands that differ, and the other two
  for (int i = 0; i < inputs; ++i) {
    const bool is_condition = op == MapOp::kWhere && i < kFunctions;
    const DType type = is_condition ? DType::kBool : dtype;
    map.inputs.push_back({type, {}});
    program.tensors.push_back({type, {1}, SizeOf(type)});
  }
  std::vector<std::int16_t> results;
  for (std::int16_t i = 0; i < kFunctions; ++i) {
    if (!op.has_value()) {
      results.push_back(i);
      continue;
    }
    MapNode node{.op = *op, .dtype = ResultOf(*op, dtype)};
    node.operands = {i, static_cast<std::int16_t>(operands > 1 ? kFunctions : 0),
                     static_cast<std::int16_t>(operands > 2 ? kFunctions + 1 : 0)};
    map.nodes.push_back(node);
    results.push_back(static_cast<std::int16_t>(inputs + i));
  }
  const auto add = [&](MapOp with, std::int16_t a, std::int16_t b) {
    map.nodes.push_back({.op = with, .dtype = DType::kBool, .operands = {a, b}});
    return static_cast<std::int16_t>(inputs + static_cast<int>(map.nodes.size()) - 1);
  };
  // All results and all operands are read.
  std::int16_t last = add(MapOp::kNotEqual, results[0], results[1]);
  for (std::size_t i = 2; i < results.size(); ++i) {
    last = add(MapOp::kLogicalXor, last, add(MapOp::kNotEqual, results[i - 1], results[i]));
  }
  const std::int16_t others = add(MapOp::kNotEqual, kFunctions, kFunctions + 1);
  add(MapOp::kLogicalXor, last, others);
  program.num_inputs = inputs;
  program.tensors.push_back({DType::kBool, {count}, static_cast<std::size_t>(count)});
  program.tensors.push_back({DType::kBool, {}, 1});
  Step step{.problem = map, .variant = {}, .inputs = {}, .output = inputs, .scalars = {}};
  for (int i = 0; i < inputs; ++i) step.inputs.push_back(i);
  program.steps.push_back(step);
  const ReduceProblem any{.op = ReduceOp::kAny, .dtype = DType::kBool, .shape = {count}, .axes_mask = 1};
  program.steps.push_back(
      {.problem = any, .variant = {}, .inputs = {inputs}, .output = inputs + 1, .scalars = {}});
  program.outputs = {inputs + 1};
  return program;
}

void Write(TimedLane& lane, const Program& program, DType dtype, double x, double y) {
  const MemoryPlan plan = PlanMemory(program);
  for (int i = 0; i < program.num_inputs; ++i) {
    const double number = i < kFunctions ? x : y;
    std::byte* const at = lane.input().data() + plan.tensors[static_cast<std::size_t>(i)].offset;
    const DType type = program.tensors[static_cast<std::size_t>(i)].dtype;
    testing::Bytes element(SizeOf(type));
    const DType part = IsComplex(type) ? PartOf(type) : type;
    for (std::int64_t k = 0; k < (IsComplex(type) ? 2 : 1); ++k) {
      testing::Store(part, type == dtype ? number : i % 2, element, k);
    }
    std::memcpy(at, element.data(), element.size());
  }
}

int Main(bool cuda, std::string_view type) {
  auto backend = bench::MakeBackend(cuda);
  if (!backend.ok()) bench::Fail(backend.status());
  TimedLane lane(std::move(*backend));
  const std::int64_t count = std::int64_t{1} << (cuda ? 24 : 17);
  double worst = 0;
  int measured = 0;
  std::printf(
      "| function | type | x, y | estimate ns | time ns | time / estimate |\n|---|---|---|---|---|---|\n");
  for (std::size_t number = 0; number < kMapOps.size(); ++number) {
    const auto op = static_cast<MapOp>(number);
    const int operands = RowOf(op).operands;
    if (operands == 0 || op == MapOp::kCast) continue;
    for (const DType dtype : kAllDTypes) {
      if (!IsMapType(dtype) || !Has(RowOf(op).takes, dtype) || (!type.empty() && type != Name(dtype)))
        continue;
      const DType result = ResultOf(op, dtype);
      const Program with = MapOf(op, dtype, count), base = MapOf(std::nullopt, result, count);
      const double per = 1e9 / static_cast<double>(count * kFunctions);
      const double estimate = (lane.Estimate(with) - lane.Estimate(base)) * per;
      double longest = 0, of_x = 0, of_y = 0;
      for (const double x : NumbersOf(dtype)) {
        for (const double y : operands > 1 ? NumbersOf(dtype) : std::vector<double>{1}) {
          Write(lane, base, result, x, y);
          const double without = lane.Seconds(base);
          Write(lane, with, dtype, x, y);
          const double time = (lane.Seconds(with) - without) * per;
          if (time > longest) longest = time, of_x = x, of_y = y;
        }
      }
      ++measured;
      // Less than this is the noise of the measurement.
      const double ratio = longest < (cuda ? 0.002 : 0.5) ? 0 : longest / std::max(estimate, 1e-6);
      worst = std::max(worst, ratio);
      if (ratio < kMaxRatio / 2) continue;
      std::printf("| %s | %s | %g, %g | %.3f | %.3f | %.1f |\n", std::string(Name(op)).c_str(),
                  std::string(Name(dtype)).c_str(), of_x, of_y, estimate, longest, ratio);
      std::fflush(stdout);
    }
  }
  std::printf("%d functions of a type; the largest ratio is %.1f\n", measured, worst);
  return measured > 0 && worst <= kMaxRatio ? 0 : 1;
}

}  // namespace
}  // namespace warpline

int main(int argc, char** argv) {
  return warpline::Main(argc > 1 && std::strcmp(argv[1], "cuda") == 0, argc > 2 ? argv[2] : "");
}
