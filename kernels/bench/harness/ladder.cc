#include "kernels/bench/harness/ladder.h"

#include <cuda_profiler_api.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/bench/harness/baselines.h"
#include "kernels/bench/harness/check.h"
#include "kernels/bench/harness/cublas_best.h"
#include "kernels/bench/harness/expected.h"
#include "kernels/bench/harness/marker.h"
#include "kernels/bench/harness/operand_slots.h"
#include "kernels/bench/harness/variants_of.h"
#include "kernels/gpu/random_data.h"
#include "kernels/reduce/canonical.h"

namespace warpline::bench {
namespace {

constexpr char kNotForThis[] = "not for this problem";

CaseResult Describe(const Problem& problem) {
  CaseResult result{.problem = problem};
  std::visit(
      [&](const auto& p) {
        result.bytes = BytesOf(p);
        result.flops = FlopsOf(p);
      },
      problem);
  return result;
}

std::size_t WorkspaceBytes(const std::vector<BoundVariant>& variants) {
  std::size_t bytes = 0;
  for (const BoundVariant& variant : variants) bytes = std::max(bytes, variant.workspace_bytes);
  return bytes;
}

// How many sets of buffers, 0 if not even one fits.
int SlotsOf(const Device& device, const Problem& problem, std::size_t other_bytes, bool warm) {
  const std::size_t set = SetBytes(problem), free = FreeBytes();
  if (free < other_bytes + set) return 0;
  if (warm) return 1;
  // Until a set's turn comes again, three times the L2 has passed through it.
  // Of tiny problems not that often: the sets are filled one by one.
  constexpr std::size_t kMaxSlots = 256;
  const std::size_t wanted = std::clamp<std::size_t>(3 * device.l2_bytes() / set + 1, 2, kMaxSlots);
  return static_cast<int>(std::min(wanted, (free - other_bytes) / set));
}

// The memory itself, as the operation would use it at best. Of a sum: reading. Of a product whose server's
// choice alone is measured: the library, where its first choice is not its best one.
void AppendBaselines(const Case& bench_case, const OperandSlots& slots, const Device& device,
                     std::vector<Row>& rows, std::vector<Launcher>& launchers) {
  const Problem& problem = bench_case.problem;
  const auto append = [&](const char* name, const char* summary, Launcher launch) {
    rows.push_back({.name = name, .summary = summary, .is_baseline = true});
    launchers.push_back(std::move(launch));
  };
  if (std::holds_alternative<TransposeProblem>(problem)) {
    const std::size_t bytes = OutBytes(problem);
    append("memcpy", "cudaMemcpyAsync, device to device", [=, &slots](int slot, cudaStream_t stream) {
      const Operands operands = slots.At(slot);
      return cudaMemcpyAsync(operands.out, operands.in[0], bytes, cudaMemcpyDeviceToDevice, stream);
    });
    if (bytes % 16 != 0) return;
    append("copy", "16 bytes a thread, through registers", [=, &slots](int slot, cudaStream_t stream) {
      return LaunchCopy(slots.At(slot).in[0], slots.At(slot).out, bytes, stream);
    });
    append("copy_shared", "16 bytes a thread, through shared memory",
           [=, &slots](int slot, cudaStream_t stream) {
             return LaunchCopyShared(slots.At(slot).in[0], slots.At(slot).out, bytes, stream);
           });
  } else if (const auto* reduce = std::get_if<ReduceProblem>(&problem)) {
    const std::size_t bytes = static_cast<std::size_t>(reduce->shape.Count()) * SizeOf(reduce->dtype);
    if (bytes % 16 != 0) return;
    // Nothing is written in fact, so the result may be smaller than the 16 bytes: operands are padded.
    append("read", "reads everything, 16 bytes a thread, and writes nothing",
           [=, &slots](int slot, cudaStream_t stream) {
             return LaunchRead(slots.At(slot).in[0], bytes, slots.At(slot).out, stream);
           });
  } else if (const auto* gemm = std::get_if<GemmProblem>(&problem);
             gemm != nullptr && bench_case.choice_only) {
    if (Launcher best = FindBestOfCublas(*gemm, slots, device)) {
      append("cublas_best16", "the fastest of the first 16 algorithms of cuBLASLt's heuristic",
             std::move(best));
    }
  }
}

void FindRoof(Roofs& roofs, bool warm, CaseResult& result) {
  const auto fastest = [&](bool baselines) {
    double rate = 0;
    for (const Row& row : result.rows) {
      if (row.measured() && row.is_baseline == baselines) rate = std::max(rate, row.rate);
    }
    return rate;
  };
  if (const auto* gemm = std::get_if<GemmProblem>(&result.problem)) {
    const Row* cublas = result.Find("cublas");
    result.roof = std::max(roofs.Gemm(gemm->dtype, gemm->precision), cublas != nullptr ? cublas->rate : 0);
    result.roof_name = absl::StrCat("cuBLASLt at its best in this run, here or at ",
                                    gemm->dtype == DType::kF64 ? 4096 : 8192, "^3");
  } else if (warm) {
    result.roof = fastest(/*baselines=*/true);
    result.roof_name = "fastest baseline at this size, in the L2";
  } else if (!std::holds_alternative<ReduceProblem>(result.problem)) {
    result.roof = roofs.copy();
    result.roof_name = absl::StrCat("device copy of ", roofs.copy_name(), ", bytes read and written");
  } else {
    result.roof = roofs.read();
    result.roof_name = "reading 1 GiB by a kernel that does nothing else";
  }
}

// Returns the name of the row that the case is compared with.
std::string BaselineName(const CaseResult& result) {
  // CUB is made for neighbouring elements: it divides for each one of another layout.
  const auto* reduce = std::get_if<ReduceProblem>(&result.problem);
  if (reduce != nullptr && !Canonicalize(*reduce).InnermostReduced()) return "read";
  for (const char* name : {"memcpy", "cublas", "cub"}) {
    if (result.Find(name) != nullptr) return name;
  }
  return "";
}

// Launches it for the first time and says what is wrong; marks the row.
template <typename Launch>
void CheckRow(const Launch& launch, const Operands& operands, const Expected& expected,
              const Problem& problem, cudaStream_t stream, Row& row) {
  Check(gpu::Poison(operands.out, OutBytes(problem), stream), "poisoning a result");
  cudaError_t error = launch(operands, stream);
  if (error == cudaErrorNotSupported) {
    cudaGetLastError();
    row.status = kNotForThis;
    return;
  }
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (error != cudaSuccess) {
    if (gpu::IsContextLost(error)) {
      throw Failure(absl::StrCat(row.name, ": ", gpu::ErrorStatus(error, "running it").ToString()));
    }
    cudaGetLastError();
    row.status = absl::StrCat("FAILED: ", cudaGetErrorString(error));
  } else if (const std::string wrong = expected.FindError(operands.out, stream); !wrong.empty()) {
    row.status = absl::StrCat("WRONG: ", wrong);
  }
  row.is_failure = !row.measured();
}

// It is timed as a graph: whether it can be captured, and is as right when it is not the first launch.
void CheckReplay(const BoundVariant& variant, const OperandSlots& slots, const Expected& expected,
                 const Problem& problem, cudaStream_t stream, Row& row) {
  Check(gpu::Poison(slots.At(0).out, OutBytes(problem), stream), "poisoning a result");
  try {
    Replay([&](int slot, cudaStream_t s) { return variant.launch(slots.At(slot), s); }, stream);
  } catch (const Failure& failure) {
    row.status = absl::StrCat("FAILED as a graph: ", failure.what());
  }
  // A lost context ends the run here.
  if (const std::string wrong = expected.FindError(slots.At(0).out, stream);
      row.measured() && !wrong.empty()) {
    row.status = absl::StrCat("WRONG as a graph: ", wrong);
  }
  row.is_failure = !row.measured();
}

// Seconds a launch would take, judged by a smaller problem; 0: no reason to ask.
double Predict(const BoundVariant& variant, const OperandSlots& slots, cudaStream_t stream) {
  if (!variant.launch_shrunk) return 0;
  const Launcher launch = [&](int slot, cudaStream_t s) { return variant.launch_shrunk(slots.At(slot), s); };
  if (const cudaError_t error = launch(0, stream); error != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  Check(cudaStreamSynchronize(stream), "running a smaller problem");
  return 64 * SecondsOfOne(launch, stream);
}

}  // namespace

CaseResult RunLadder(const Device& device, Roofs& roofs, ClockSampler& clocks, const Case& bench_case,
                     const LadderOptions& options) {
  const Problem& problem = bench_case.problem;
  cudaStream_t stream = device.stream.get();
  CaseResult result = Describe(problem);
  const std::vector<BoundVariant> variants = VariantsOf(bench_case, device);
  const bool fits_l2 = SetBytes(problem) <= device.l2_bytes() / 4 * 3;
  const bool warm = options.buffers == Buffers::kWarm || (options.buffers == Buffers::kAuto && fits_l2);
  result.buffers = warm ? "warm" : "rotating";
  const std::size_t other_bytes = WorkspaceBytes(variants) + Expected::Bytes(problem);
  result.slots = SlotsOf(device, problem, other_bytes, warm);
  if (result.slots == 0) {
    result.rows.push_back({.name = "-", .status = "does not fit into the memory of this GPU"});
    return result;
  }
  result.l2_times = static_cast<double>(result.slots) * static_cast<double>(SetBytes(problem)) /
                    static_cast<double>(device.l2_bytes());
  const OperandSlots slots(problem, result.slots, WorkspaceBytes(variants), stream);
  std::vector<Row> rows;
  std::vector<Launcher> launchers;  // of the rows that are measured, in their order
  {
    const Expected expected(problem, slots.At(0), stream);
    for (const BoundVariant& variant : variants) {
      Row& row = rows.emplace_back();
      row.name = variant.name;
      row.summary = variant.summary;
      if (!variant.supported) {
        row.status = kNotForThis;
        continue;
      }
      if (const double seconds = Predict(variant, slots, stream); seconds > options.longest_launch_seconds) {
        row.status = absl::StrFormat("left out: about %.1f s a launch", seconds);
        continue;
      }
      CheckRow(variant.launch, slots.At(0), expected, problem, stream, row);
      if (row.measured()) CheckReplay(variant, slots, expected, problem, stream, row);
      if (!row.measured()) continue;
      launchers.push_back([&](int slot, cudaStream_t s) { return variant.launch(slots.At(slot), s); });
      if (bench_case.choice_only) break;
    }
  }
  AppendBaselines(bench_case, slots, device, rows, launchers);
  clocks.Take();  // what came before
  const std::vector<Timing> timings = TimeInTurns(launchers, result.slots, options.rounds, stream);
  result.clocks = clocks.Take();

  auto timing = timings.begin();
  for (Row& row : rows) {
    if (!row.measured()) continue;
    row.timing = *timing++;
    row.rate = (result.counts_flops() ? result.flops : result.bytes) / row.timing.median;
  }
  result.rows = std::move(rows);
  FindRoof(roofs, warm, result);
  result.baseline = BaselineName(result);
  const Row* baseline = result.Find(result.baseline);
  for (Row& row : result.rows) {
    if (!row.measured()) continue;
    if (result.roof > 0) row.roof_ratio = row.rate / result.roof;
    if (baseline != nullptr) row.baseline_ratio = baseline->timing.median / row.timing.median;
  }
  return result;
}

CaseResult LaunchOnce(const Device& device, const Case& bench_case) {
  const Problem& problem = bench_case.problem;
  cudaStream_t stream = device.stream.get();
  CaseResult result = Describe(problem);
  result.buffers = "once";
  const std::vector<BoundVariant> variants = VariantsOf(bench_case, device);
  const OperandSlots slots(problem, 1, WorkspaceBytes(variants), stream);
  const Expected expected(problem, slots.At(0), stream);
  for (const BoundVariant& variant : variants) {
    if (!variant.supported) continue;
    Row& row = result.rows.emplace_back();
    row.name = variant.name;
    row.summary = variant.summary;
    const int number = static_cast<int>(result.rows.size());
    const auto profiled = [&](const Operands& operands, cudaStream_t s) {
      Check(cudaStreamSynchronize(s), "waiting for what came before");
      Check(cudaProfilerStart(), "starting the profiler");
      Check(LaunchVariantMarker(number, s), "launching a marker");
      const cudaError_t launched = variant.launch(operands, s);
      const cudaError_t ran = cudaStreamSynchronize(s);
      Check(cudaProfilerStop(), "stopping the profiler");
      return launched != cudaSuccess ? launched : ran;
    };
    CheckRow(profiled, slots.At(0), expected, problem, stream, row);
    if (bench_case.choice_only && row.measured()) break;
  }
  return result;
}

}  // namespace warpline::bench
