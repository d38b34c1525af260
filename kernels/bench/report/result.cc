#include "kernels/bench/report/result.h"

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "kernels/bench/harness/operand_slots.h"
#include "kernels/bench/report/labels.h"

namespace warpline::bench {
namespace {

// Adds what torch_column.py must know beyond names, shapes and axes.
void AddDetails(const Problem& problem, nlohmann::ordered_json& json) {
  json["out_dtype"] = Name(OutDType(problem));
  if (const auto* reduce = std::get_if<ReduceProblem>(&problem)) json["reduce_op"] = Name(reduce->op);
  if (const auto* gemm = std::get_if<GemmProblem>(&problem)) {
    json["trans_a"] = gemm->trans_a;
    json["trans_b"] = gemm->trans_b;
    json["batch"] = gemm->batch.Count();
    json["bias"] = gemm->has_bias;
    json["activation"] = gemm->activation == Activation::kGelu   ? "gelu"
                         : gemm->activation == Activation::kRelu ? "relu"
                                                                 : "none";
  }
  if (const std::optional<PairMap> each = PairIn(problem)) {
    std::vector<int> broadcast;
    for (int axis = 0; axis < each->shape.rank; ++axis) {
      if (each->y_strides[axis] == 0) broadcast.push_back(axis);
    }
    json["broadcast"] = broadcast;
  }
}

}  // namespace

const Row* CaseResult::Find(std::string_view name) const {
  for (const Row& row : rows) {
    if (row.name == name && row.measured()) return &row;
  }
  return nullptr;
}

void Print(const CaseResult& result) {
  const bool flops = result.counts_flops();
  const double unit = flops ? 1e12 : 1e9;
  std::printf("\n%s, %s", Label(result.problem).c_str(), result.buffers.c_str());
  if (result.buffers == "rotating") {
    std::printf(" over %d sets of buffers, %.1f times the L2", result.slots, result.l2_times);
  }
  if (result.roof > 0) {
    std::printf("; roof %.4g %s: %s", result.roof / unit, flops ? "TFLOP/s" : "GB/s",
                result.roof_name.c_str());
  }
  std::printf("\n%s\n%-20s %10s %9s %7s %10s %8s\n", result.clocks.ToString().c_str(), "variant", "us",
              flops ? "TFLOP/s" : "GB/s", "% roof",
              result.baseline.empty() ? "" : ("x " + result.baseline).c_str(), "+- %");
  for (const Row& row : result.rows) {
    if (!row.measured()) {
      std::printf("%-20s %s\n", row.name.c_str(), row.status.c_str());
      continue;
    }
    const auto or_dash = [](double value, const char* format) {
      char text[32] = "-";
      if (value > 0) std::snprintf(text, sizeof(text), format, value);
      return std::string(text);
    };
    const double spread = (row.timing.greatest - row.timing.least) / 2 / row.timing.median;
    std::printf("%-20s %10.2f %9.4g %7s %10s %8.1f%s\n", row.name.c_str(), row.timing.median * 1e6,
                row.rate / unit, or_dash(100 * row.roof_ratio, "%.1f").c_str(),
                or_dash(row.baseline_ratio, "%.3f").c_str(), 100 * spread,
                row.is_baseline ? "  (baseline)" : "");
  }
  std::fflush(stdout);
}

void PrintLine(const CaseResult& result) {
  std::printf("%-48s", Label(result.problem).c_str());
  const double unit = result.counts_flops() ? 1e12 : 1e9;
  bool first = true;
  for (const Row& row : result.rows) {
    if (row.measured() && first) {
      std::printf(" %10.2f us %8.4g %s %5.1f %% of the roof  %s", row.timing.median * 1e6, row.rate / unit,
                  result.counts_flops() ? "TFLOP/s" : "GB/s", 100 * row.roof_ratio, row.name.c_str());
      first = false;
    } else if (!row.measured()) {
      std::printf(" [%s: %s]", row.name.c_str(), row.status.c_str());
    }
  }
  std::printf("\n");
  std::fflush(stdout);
}

nlohmann::ordered_json ToJson(const ClockSummary& clocks) {
  nlohmann::ordered_json json;
  json["samples"] = clocks.samples;
  if (clocks.samples == 0) return json;
  json["sm_mhz_least"] = clocks.sm_mhz_least;
  json["sm_mhz_median"] = clocks.sm_mhz_median;
  json["memory_mhz_least"] = clocks.memory_mhz_least;
  json["memory_mhz_median"] = clocks.memory_mhz_median;
  json["power_watts_median"] = clocks.power_watts_median;
  json["power_watts_greatest"] = clocks.power_watts_greatest;
  json["throttle_reasons"] = clocks.throttle_reasons;
  return json;
}

nlohmann::ordered_json ToJson(const CaseResult& result) {
  nlohmann::ordered_json json;
  json["op"] = OpName(result.problem);
  json["dtype"] = TypeName(result.problem);
  std::vector<std::int64_t> shape;
  for (const auto& part : absl::StrSplit(ShapeName(result.problem), 'x')) {
    std::int64_t size = 0;
    if (absl::SimpleAtoi(part, &size)) shape.push_back(size);
  }
  json["shape"] = shape;
  json["axes"] = AxesName(result.problem);
  json["perm"] = PermName(result.problem);
  AddDetails(result.problem, json);
  json["label"] = Label(result.problem);
  json["buffers"] = result.buffers;
  json["slots"] = result.slots;
  json["l2_times"] = result.l2_times;
  json["bytes"] = result.bytes;
  json["flops"] = result.flops;
  json["unit"] = result.counts_flops() ? "FLOP/s" : "B/s";
  json["roof"] = result.roof;
  json["roof_name"] = result.roof_name;
  json["baseline"] = result.baseline;
  json["clocks"] = ToJson(result.clocks);
  std::vector<nlohmann::ordered_json> rows;
  for (const Row& row : result.rows) {
    nlohmann::ordered_json& at = rows.emplace_back();
    at["name"] = row.name;
    at["summary"] = row.summary;
    at["is_baseline"] = row.is_baseline;
    at["status"] = row.measured() ? "ok" : row.status;
    if (!row.measured()) continue;
    at["seconds"] = row.timing.median;
    at["seconds_least"] = row.timing.least;
    at["seconds_greatest"] = row.timing.greatest;
    at["launches"] = row.timing.launches;
    at["rounds"] = row.timing.rounds;
    at["rate"] = row.rate;
    at["roof_ratio"] = row.roof_ratio;
    at["baseline_ratio"] = row.baseline_ratio;
  }
  json["rows"] = std::move(rows);
  return json;
}

}  // namespace warpline::bench
