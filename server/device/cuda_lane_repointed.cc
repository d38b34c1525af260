// The part of CudaLane that makes graphs of what is launched as calls again and again.
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "kernels/gpu/repointed_graph.h"
#include "server/device/cuda_lane.h"
#include "server/observe/log.h"
#include "server/observe/nvtx.h"

namespace warpline {
namespace {

// The same program with other addresses, in the order of BasesOf.
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

bool CudaLane::FitsRepointed(const StagedProgram& staged, const Entry& entry, const Run& run) const {
  return entry.repointed.has_value() && !run.timed && entry.repointed_path == run.path &&
         entry.repointed_stream == StreamFor(staged, run.path) &&
         entry.repointed->Fits(BasesOf(staged, run.path));
}

CudaLane::Entry* CudaLane::MakeRepointed(const StagedProgram& staged, Entry* entry, Run& run) {
  const bool by_calls = run.path == Path::kMapped || run.path == Path::kCalls;
  // A block of the pool is another one each time, and the streams of a partition cannot be captured.
  if (!by_calls || entry->pool_bytes > 0 || device_.partition) return entry;
  if (++entry->calls != kCallsBeforeGraph) return entry;
  const Bases bases = BasesOf(staged, run.path);
  if (bases.size() > gpu::RepointedGraph::kMaxBases) return entry;
  run.prepared = true;
  const nvtx::Range range(nvtx::Name::kBuildGraph);
  cudaStream_t stream = StreamFor(staged, run.path);
  const auto enqueue = [&](std::span<std::byte* const> at) {
    const MovedProgram moved(staged, at);
    // Nothing lies at these addresses, so scalars are not looked at.
    return run.path == Path::kMapped
               ? RunOnSlots(moved.staged(), reinterpret_cast<const StepScalars*>(at.back()), *entry, false)
               : RunCalls(moved.staged(), *entry, Run{.path = run.path});
  };
  auto made = gpu::RepointedGraph::Make(bases, enqueue, stream);
  if (!made.ok()) {
    // The calls go on. Nothing else has been enqueued on the stream.
    Log("info", "a program is not made a graph",
        {{"variants", absl::StrJoin(entry->variants, ",", absl::StreamFormatter())},
         {"reason", std::string(made.status().message())}});
    device_.completion->ReportError(made.status());
    return entry;
  }
  metrics_.graph_cache.instantiations.Add();
  Entry with = std::move(*entry);
  with.repointed.emplace(*std::move(made));
  with.repointed_path = run.path;
  with.repointed_stream = stream;
  const std::size_t bytes = with.GraphBytes();
  return cache_.Replace(staged.signature, std::move(with), bytes);
}

}  // namespace warpline
