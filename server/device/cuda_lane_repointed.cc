// The part of CudaLane that makes graphs of programs that are launched again and again.
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "kernels/gpu/repointed_graph.h"
#include "server/device/cuda_lane.h"
#include "server/observe/log.h"
#include "server/observe/nvtx.h"

namespace warpline {
namespace {

// The same program with the addresses of `bases`, in the order of BasesOf.
class MovedProgram {
 public:
  MovedProgram(const StagedProgram& staged, std::span<std::byte* const> bases)
      : bindings_(staged.bindings.begin(), staged.bindings.end()), staged_(staged) {
    staged_.input = {bases[0], staged.input.size()};
    staged_.output = {bases[1], staged.output.size()};
    std::size_t next = 2;
    for (Binding& binding : bindings_) {
      const std::span<std::byte> bytes = binding.memory.bytes();
      if (bytes.empty()) continue;
      binding.memory = Buffer({bases[next++], bytes.size()}, binding.memory.place(), nullptr);
    }
    staged_.bindings = bindings_;
  }
  MovedProgram(const MovedProgram&) = delete;
  MovedProgram& operator=(const MovedProgram&) = delete;

  const StagedProgram& staged() const { return staged_; }

 private:
  Bindings bindings_;
  StagedProgram staged_;
};

}  // namespace

CudaLane::Bases CudaLane::BasesOf(const StagedProgram& staged, Path path) const {
  Bases bases = {staged.input.data(), staged.output.data()};
  for (const Binding& binding : staged.bindings) {
    if (!binding.memory.bytes().empty()) bases.push_back(binding.memory.bytes().data());
  }
  if (path == Path::kMapped) {
    bases.push_back(reinterpret_cast<std::byte*>(const_cast<StepScalars*>(ScalarsOf(staged))));
  }
  return bases;
}

bool CudaLane::MayBeGraph(const CudaProgram& program, Path path) const {
  return path != Path::kBlocks && program.device_bytes == 0 && !device_.partition;
}

CudaLane::Entry* CudaLane::GraphFor(const StagedProgram& staged, Run& run) {
  if (run.timed || !MayBeGraph(*run.program, run.path)) return nullptr;
  const std::uint64_t key = KeyOf(*run.program, run.path, staged.urgent);
  Entry* known = cache_.Find(key);
  const bool is_due = LaunchesOf(*run.program).load(std::memory_order_relaxed) >= kLaunchesBeforeGraph;
  if (known == nullptr && is_due && !no_graphs_.contains(key)) {
    run.prepared = true;
    absl::StatusOr<gpu::RepointedGraph> graph = MakeGraph(staged, run);
    if (graph.ok()) {
      Entry entry{*std::move(graph), run.variants};
      const std::size_t bytes = entry.GraphBytes();
      known = cache_.Insert(key, std::move(entry), bytes, staged.owner);
      metrics_.graph_cache.instantiations.Add();
    } else {
      // The program is enqueued call by call instead. So far the stream has only copies from other devices.
      Log("info", "a program is not made a graph",
          {{"variants", absl::StrJoin(run.variants, ",", absl::StreamFormatter())},
           {"reason", std::string(graph.status().message())}});
      device_.completion->ReportError(graph.status());
      constexpr std::size_t kMaxKept = 4096;
      if (no_graphs_.size() >= kMaxKept) no_graphs_.clear();
      no_graphs_.insert(key);
    }
  }
  const bool fits = known != nullptr && known->graph.Fits(BasesOf(staged, run.path));
  (fits ? metrics_.graph_cache.hits : metrics_.graph_cache.misses).Add();
  return fits ? known : nullptr;
}

absl::StatusOr<gpu::RepointedGraph> CudaLane::MakeGraph(const StagedProgram& staged, Run& run) {
  const Bases bases = BasesOf(staged, run.path);
  const nvtx::Range range(nvtx::Name::kBuildGraph);
  const auto enqueue = [&](std::span<std::byte* const> at) {
    const MovedProgram moved(staged, at);
    // There is no memory at these addresses, so the scalars must not be read.
    return run.path == Path::kMapped
               ? RunOnSlots(moved.staged(), reinterpret_cast<const StepScalars*>(at.back()), run)
               : RunOverCopies(moved.staged(), run);
  };
  return gpu::RepointedGraph::Make(bases, enqueue, StreamFor(staged));
}

}  // namespace warpline
