// A lane of a GPU: a stream, a small arena of device memory, and the graphs captured on them. CudaPlan says
// what is launched for a program. Its path is chosen at the launch, by whether the device is idle.
#ifndef WARPLINE_SERVER_DEVICE_CUDA_LANE_H_
#define WARPLINE_SERVER_DEVICE_CUDA_LANE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "kernels/gpu/gate.h"
#include "kernels/gpu/handle.h"
#include "kernels/gpu/repointed_graph.h"
#include "kernels/gpu/stream_flag.h"
#include "server/device/bad_index_box.h"
#include "server/device/cuda_backend.h"
#include "server/device/cuda_device.h"
#include "server/device/cuda_plan.h"
#include "server/device/cuda_program.h"
#include "server/device/graph_cache.h"
#include "server/device/kernel_series.h"

namespace warpline {

// `device` outlives the lane.
class CudaLane : public Lane {
 public:
  static absl::StatusOr<std::unique_ptr<CudaLane>> Create(CudaDevice& device,
                                                          const CudaBackendOptions& options,
                                                          Metrics& metrics);
  ~CudaLane() override;

  void Launch(const StagedProgram& staged, LaunchDone done) override;
  bool LaunchesAtOnce(const Program& program, const MemoryPlan& plan,
                      const DeviceProgram* compiled) const override;

 private:
  // Only later launches use a graph: making one takes three captures, and a client may never send the program
  // again.
  static constexpr int kLaunchesBeforeGraph = 8;
  // A program that the lane launches as a graph, for one path and one stream.
  struct Entry {
    gpu::RepointedGraph graph;
    VariantNames variants;  // the variants that it runs

    // An estimate of the device memory that the graph uses, from its number of nodes. CUDA does not report
    // it, and the amount of free memory changes by whole blocks and for every process. Graphs of three nodes
    // took 105,120 bytes each on an H200 with driver 580.
    std::size_t GraphBytes() const { return graph.nodes() * 35040; }
  };
  // The state of one launch.
  struct Run {
    const CudaProgram* program = nullptr;
    const CudaPlan* plan = nullptr;  // the program's plan for this kind of device
    Path path = Path::kCopied;
    bool timed = false;
    bool brief = false;  // the launching thread polls a flag; otherwise an event marks the end
    bool started_alone = false;
    bool prepared = false;    // something was loaded or built first
    std::uint64_t order = 0;  // its number among the launches of the device
    Buffer block;             // from the device's pool, if the lane's memory is not enough
    Buffer peers;             // from the pool too: copies of operands that lie on other devices
    VariantNames variants;    // the variants that run
    KernelMemory memory = KernelMemory::kDevice;
    std::size_t input_bytes = 0, output_bytes = 0;  // bytes that are copied; set if `timed`
  };

  CudaLane(CudaDevice& device, const CudaBackendOptions& options, Metrics& metrics);
  const CudaPlan& PlanFor(const CudaProgram& program) const { return program.plans[device_.kind]; }
  std::atomic<int>& LaunchesOf(const CudaProgram& program) const {
    return program.launches[static_cast<std::size_t>(device_.info.ordinal)];
  }
  // Runs the program on its slots or over copies, depending on run.path.
  absl::Status RunByCalls(const StagedProgram& staged, Run& run);
  absl::Status RunOnSlots(const StagedProgram& staged, const StepScalars* scalars, Run& run);
  // Returns where a program that runs on its slots finds the scalars of its step: in its slot, or on the
  // device if they are the defaults. Null for steps that read none.
  const StepScalars* ScalarsOf(const StagedProgram& staged) const;
  // The addresses that may differ at the next launch: slots, the memory of bindings, scalars.
  using Bases = absl::InlinedVector<std::byte*, 6>;
  Bases BasesOf(const StagedProgram& staged, Path path) const;
  absl::Status RunOverCopies(const StagedProgram& staged, Run& run);
  absl::Status RunInPieces(const StagedProgram& staged, Run& run);
  // Returns whether no other program used the device between this program's launch and now.
  bool WasAlone(const Run& run) const { return run.started_alone && device_.launched.load() == run.order; }
  absl::Status EnsureTimingEvents(const Run& run);
  bool IsTimeToTime();
  absl::Status Start(const StagedProgram& staged, LaunchDone& done);
  // Returns whether the program that was launched last has ended, or ends within some microseconds.
  bool EndsBriefly();
  absl::Status RecordEnd(cudaStream_t last);
  // Enqueues the program, followed by the flag or the event that marks its end. A timed program that is
  // enqueued call by call waits at a gate until all of it is enqueued.
  absl::Status Enqueue(const StagedProgram& staged, Run& run);
  // Returns whether a program may be launched as a graph on this path. Not if it uses a block of the pool,
  // because the block differs each time, nor on streams of a partition, which cannot be captured.
  bool MayBeGraph(const CudaProgram& program, Path path) const;
  // The priority of a graph's kernels is that of the stream on which they were captured.
  static std::uint64_t KeyOf(const CudaProgram& program, Path path, bool urgent) {
    return 4 * program.id() + (path == Path::kMapped ? 2 : 0) + (urgent ? 1 : 0);
  }
  // Returns true if the program may be launched as a graph, but this lane has not tried to make one yet.
  bool LacksGraph(const CudaProgram& program, Path path) const;
  // Returns the graph for this launch, and makes it if the program has been launched often enough. Null:
  // there is none, and the program is enqueued call by call.
  Entry* GraphFor(const StagedProgram& staged, Run& run);
  absl::StatusOr<gpu::RepointedGraph> MakeGraph(const StagedProgram& staged, Run& run);
  // Enqueues copies of the operands that lie on other devices, and lets the program use the copies.
  // `bindings` is storage for the changed bindings.
  absl::Status FetchPeers(StagedProgram& staged, Bindings& bindings, Run& run);
  // Takes a block of the device's pool. Sets pool_in_pieces_ if the pool has the bytes, but not as one block.
  absl::StatusOr<Buffer> TakeBlock(std::size_t bytes);
  absl::Status EnqueueWork(const StagedProgram& staged, Run& run);
  static KernelMemory MemoryOf(const MemoryPlan& plan, Path path);
  // The bytes of the device's pool that the launch uses.
  std::size_t PoolBytesOf(const Run& run) const;
  // Waits for the rest of a failed launch, which may still use the slots.
  void Drain(Path path, cudaStream_t stream);
  // Records nothing if the times include time of the host.
  void RecordTimes(const Program& program, const Run& run);
  void RecordKernel(const Problem& problem, std::size_t step, const Run& run, double seconds);
  void RecordSteps(const Program& program, const Run& run);
  void RecordWhole(const Program& program, const Run& run);
  void RecordPieces(const Program& program, const Run& run);
  double SecondsBetween(std::size_t first_event, std::size_t last_event) const;
  cudaStream_t StreamFor(const StagedProgram& staged) const {
    return staged.urgent ? urgent_stream_.get() : stream_.get();
  }
  std::span<std::byte> arena() const { return {static_cast<std::byte*>(arena_.get()), options_.lane_bytes}; }

  CudaDevice& device_;
  const CudaBackendOptions options_;
  Metrics& metrics_;
  TransferSeries h2d_, d2h_;
  Counter peer_bytes_;
  KernelSeriesTable series_;
  gpu::Stream stream_, urgent_stream_;  // one of them is in use at a time
  gpu::DeviceBytes arena_;
  std::optional<BadIndexBox> bad_index_;
  gpu::Event done_event_;
  std::optional<gpu::StreamFlag> done_flag_;  // on devices that use host pointers
  TimingEvents timing_;
  std::optional<gpu::Gate> gate_;  // on devices that use host pointers, if jobs are sampled at all
  GraphCache<Entry> cache_;
  absl::flat_hash_set<std::uint64_t> no_graphs_;  // keys of programs that cannot be graphs
  bool pool_in_pieces_ = false;                   // why the last launch failed
  int untimed_ = 0;                               // launches since one was timed
  std::optional<MonotonicTime> timed_at_;         // when a job was last timed, if ever
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUDA_LANE_H_
