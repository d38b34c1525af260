#include "server/device/cpu_backend.h"

#include <algorithm>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_variants.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"
#include "server/base/usable_memory.h"
#include "server/device/cpu_rates.h"
#include "server/device/device_budget.h"
#include "server/device/kernel_series.h"
#include "server/device/select_variant.h"
#include "server/memory/mapped_memory.h"
#include "server/observe/nvtx.h"
#include "server/plan/address_table.h"
#include "server/plan/bad_index_error.h"
#include "server/plan/cost.h"

namespace warpline {
namespace {

constexpr DeviceTraits kTraits;

// Returns true if any output of the step has elements. A count of rows is an output with one element, even if
// the rows are empty.
bool HasResults(const Program& program, const Step& step) {
  const auto has_elements = [&](int tensor) {
    return program.tensors[static_cast<std::size_t>(tensor)].shape.Count() > 0;
  };
  return has_elements(step.output) || std::any_of(step.further.begin(), step.further.end(), has_elements);
}

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "cpu";
}

template <typename AnyProblem>
struct RowOf;
template <typename... ProblemT>
struct RowOf<std::variant<ProblemT...>> {
  using Type = std::variant<const CpuVariant<ProblemT>*...>;
};
// The table row that runs a step, for the same alternative of Problem. Null if there is no such row.
using StepRow = RowOf<Problem>::Type;

struct CpuProgram : DeviceProgram {
  std::size_t bytes() const override { return sizeof(CpuProgram) + rows.size() * sizeof(StepRow); }

  std::vector<StepRow> rows;     // one per step
  std::size_t mapped_bytes = 0;  // scratch memory that is mapped for the run; 0 if the lane has enough
};

StepRow FindRow(const Step& step) {
  return std::visit(
      [&](const auto& p) -> StepRow { return FindVariant(CpuTable(p), p, step.variant, kTraits); },
      step.problem);
}

std::size_t WorkspaceOf(const Problem& problem, const StepRow& any_row) {
  return std::visit(
      [&]<typename ProblemT>(const ProblemT& p) -> std::size_t {
        const auto* row = std::get<const CpuVariant<ProblemT>*>(any_row);
        return row == nullptr ? 0 : row->workspace_bytes(p, kTraits);
      },
      problem);
}

VariantCost CostOf(const Problem& problem, const StepRow& any_row) {
  return std::visit(
      [&]<typename ProblemT>(const ProblemT& p) {
        const auto* row = std::get<const CpuVariant<ProblemT>*>(any_row);
        return row != nullptr && row->cost != nullptr ? row->cost(p, kTraits) : VariantCost();
      },
      problem);
}

// The pool is for programs that need more memory than a lane has. Pages take memory only once they are
// touched, but by default half of the memory is left for other uses of the machine.
absl::StatusOr<std::size_t> PoolBytes(const CpuBackendOptions& options) {
  const std::size_t lanes_bytes = static_cast<std::size_t>(options.lanes) * options.lane_bytes;
  constexpr std::size_t kMinPoolBytes = std::size_t{64} << 20;
  const std::size_t memory = UsableMemoryBytes();
  ASSIGN_OR_RETURN(const std::size_t bytes,
                   DecideDeviceBytes({.wanted = options.device_bytes,
                                      .exact = options.exact_device_bytes,
                                      .least = lanes_bytes + kMinPoolBytes,
                                      .free = memory,
                                      .margin = options.exact_device_bytes ? 0 : memory / 2}));
  return bytes - lanes_bytes;
}

// Runs steps directly on their operands: inputs and outputs in the staging slots, the rest in scratch memory.
class CpuLane : public Lane {
 public:
  CpuLane(Buffer scratch, const CpuBackendOptions& options)
      : scratch_(std::move(scratch)), options_(options) {
    if (options.metrics != nullptr) series_.emplace(*options.metrics, /*device=*/0);
  }

  void Launch(const StagedProgram& staged, LaunchDone done) override {
    LaunchReport report;
    const bool timed = series_.has_value() && options_.timing;
    const auto& compiled = static_cast<const CpuProgram&>(*staged.compiled);
    Buffer scratch = scratch_;
    if (compiled.mapped_bytes > 0) {
      absl::StatusOr<Buffer> mapped = MapMemory(compiled.mapped_bytes, Pages::kHuge);
      if (!mapped.ok()) return done({WithRetryAfter(mapped.status(), absl::Seconds(1)), {}});
      scratch = *std::move(mapped);
    }
    if (staged.plan->scratch_bytes > scratch.bytes().size()) {
      return done(
          {absl::InternalError(absl::StrCat("a program whose intermediates take ", staged.plan->scratch_bytes,
                                            " bytes was given ", scratch.bytes().size())),
           {}});
    }
    const AddressTable addresses = Addresses(staged, scratch.bytes());
    for (std::size_t i = 0; i < staged.program->steps.size() && report.status.ok(); ++i) {
      const MonotonicTime start = MonotonicClock::now();
      const nvtx::Range range(nvtx::Name::kStep);
      const Step& step = staged.program->steps[i];
      report.status = CheckAlive(staged);
      if (!report.status.ok()) break;
      report.status = std::visit(
          [&](const auto& problem) { return Run(staged, addresses, i, problem, report); }, step.problem);
      // A step that was stopped midway has no result.
      if (report.status.ok()) report.status = CheckAlive(staged);
      if (timed && report.status.ok()) {
        const KernelSeries& series = series_->Of(step.problem, report.variants.back(), KernelMemory::kDevice);
        series.seconds.Observe(SecondsSince(start));
        series.bytes.Add(BytesOf(step.problem));
        series.flops.Add(FlopsOf(step.problem));
      }
    }
    scratch = Buffer();  // released before `done`: the next program may count on this memory
    done(std::move(report));
  }

  // True for a small product, or a few passes over a few pages: this takes less time than switching to
  // another thread and back.
  bool LaunchesAtOnce(const Program& program, const MemoryPlan& plan, const DeviceProgram*) const override {
    constexpr std::size_t kBytes = 32 << 10;
    constexpr double kFlops = 1 << 18;
    if (plan.TravellingBytes() + plan.scratch_bytes > kBytes) return false;
    double flops = 0;
    for (const Step& step : program.steps) flops += FlopsOf(step.problem) + BytesOf(step.problem);
    return flops < kFlops;
  }

 private:
  // Checked between the steps of a program, which may take long together, and by kernels while they run.
  static absl::Status CheckAlive(const StagedProgram& staged) {
    if (staged.cancelled != nullptr && staged.cancelled->load(std::memory_order_relaxed)) {
      return absl::CancelledError("the client cancelled while the request was running");
    }
    if (MonotonicClock::now() < staged.deadline) return absl::OkStatus();
    return absl::DeadlineExceededError("the deadline passed while the request was running");
  }

  template <typename ProblemT>
  static absl::Status Run(const StagedProgram& staged, const AddressTable& addresses, std::size_t index,
                          const ProblemT& problem, LaunchReport& report) {
    const Program& program = *staged.program;
    const Step& step = program.steps[index];
    const auto* row =
        std::get<const CpuVariant<ProblemT>*>(static_cast<const CpuProgram&>(*staged.compiled).rows[index]);
    if (row == nullptr) return absl::InternalError("no variant runs a validated problem");
    Operands operands = addresses.OperandsOf(step, index);
    BadIndex bad_index;
    operands.bad_index = {&bad_index, nullptr, static_cast<std::int32_t>(index)};
    operands.interest = {
        [](const void* of) { return !CheckAlive(*static_cast<const StagedProgram*>(of)).ok(); }, &staged};
    // Without a result there is nothing to do, however large the other sizes are.
    if (HasResults(program, step)) row->launch(problem, operands);
    report.variants.push_back(row->name);
    return BadIndexError(program, bad_index);
  }

  static AddressTable Addresses(const StagedProgram& staged, std::span<std::byte> scratch) {
    AddressTable addresses(*staged.plan);
    addresses.PlaceInputs(*staged.plan, staged.bindings, staged.input.data());
    addresses.PlaceOutputs(staged.bindings, staged.output.data());
    addresses.PlaceScratch(*staged.plan, scratch.data());
    addresses.PlaceResident(staged.bindings);
    addresses.PlaceShared(staged.bindings);
    addresses.workspace = scratch.subspan(staged.plan->scratch_bytes);
    return addresses;
  }

  Buffer scratch_;
  const CpuBackendOptions options_;
  std::optional<KernelSeriesTable> series_;  // set if there are metrics
};

class CpuBackend : public Backend {
 public:
  CpuBackend(const CpuBackendOptions& options, std::size_t pool_bytes)
      : options_(options),
        devices_{{.ordinal = 0,
                  .name = CpuName(),
                  .compute_capability = {},
                  .pool_bytes = pool_bytes,
                  .resident_bytes = options.resident_bytes,
                  .upload_bytes = options.upload_bytes}} {}

  std::string_view name() const override { return "cpu"; }
  std::span<const DeviceInfo> devices() const override { return devices_; }

  std::vector<VariantInfo> Variants() const override {
    std::vector<VariantInfo> all;
    AppendVariantInfo(Op::kTranspose, CpuTransposeVariants(), {&kTraits, 1}, all);
    AppendVariantInfo(Op::kGemm, CpuGemmVariants(), {&kTraits, 1}, all);
    AppendVariantInfo(Op::kReduce, CpuReduceVariants(), {&kTraits, 1}, all);
    AppendVariantInfo(Op::kMap, CpuMapVariants(), {&kTraits, 1}, all);
    AppendVariantInfo(Op::kTake, CpuTakeVariants(), {&kTraits, 1}, all);
    AppendVariantInfo(Op::kPut, CpuPutVariants(), {&kTraits, 1}, all);
    AppendVariantInfo(Op::kScan, CpuScanVariants(), {&kTraits, 1}, all);
    AppendVariantInfo(Op::kSort, CpuSortVariants(), {&kTraits, 1}, all);
    AppendVariantInfo(Op::kSearch, CpuSearchVariants(), {&kTraits, 1}, all);
    AppendVariantInfo(Op::kCompress, CpuCompressVariants(), {&kTraits, 1}, all);
    return all;
  }

  absl::Status CheckVariant(const Problem& problem, std::string_view variant) const override {
    return std::visit([&](const auto& p) { return CheckVariantIn(CpuTable(p), p, variant, kTraits); },
                      problem);
  }

  absl::StatusOr<CompiledProgram> Compile(const Program& program, const MemoryPlan& plan) const override {
    auto compiled = std::make_shared<CpuProgram>();
    std::size_t workspace = 0;
    compiled->rows.reserve(program.steps.size());
    for (const Step& step : program.steps) {
      compiled->rows.push_back(FindRow(step));
      workspace = std::max(workspace, WorkspaceOf(step.problem, compiled->rows.back()));
    }
    const std::size_t needed = plan.scratch_bytes + workspace;
    const std::size_t limit = std::max(options_.lane_bytes, devices_[0].pool_bytes);
    if (needed > limit) {
      return absl::InvalidArgumentError(
          absl::StrCat("the request needs ", needed,
                       " bytes of scratch memory for its intermediate results and "
                       "its steps; limit ",
                       limit, " (the server's --device-bytes)"));
    }
    if (needed > options_.lane_bytes) compiled->mapped_bytes = needed;
    // Measured by the first Compile, because many users of a backend never compile a program.
    std::call_once(measured_, [this] { rates_ = MeasureCpuRates(); });
    const double seconds = ProgramSeconds(program, rates_, [&](const Step& step, std::size_t index) {
      return CostOf(step.problem, compiled->rows[index]);
    });
    return CompiledProgram{.program = compiled, .seconds = seconds, .device_bytes = compiled->mapped_bytes};
  }

  bool launches_asynchronously() const override { return false; }

  absl::StatusOr<std::unique_ptr<Lane>> CreateLane(int) override {
    ASSIGN_OR_RETURN(auto scratch, MapMemory(options_.lane_bytes));
    return std::make_unique<CpuLane>(std::move(scratch), options_);
  }

  absl::StatusOr<Buffer> AllocateHost(std::size_t bytes) override { return MapMemory(bytes); }
  absl::StatusOr<Buffer> AllocateResident(int, std::size_t bytes) override {
    return AllocateMemory(bytes, kTensorAlignment);
  }

 private:
  const CpuBackendOptions options_;
  const std::vector<DeviceInfo> devices_;
  mutable std::once_flag measured_;
  mutable DeviceRates rates_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> CreateCpuBackend(const CpuBackendOptions& options) {
  ASSIGN_OR_RETURN(const std::size_t pool_bytes, PoolBytes(options));
  return std::make_unique<CpuBackend>(options, pool_bytes);
}

}  // namespace warpline
