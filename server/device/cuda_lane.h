// A lane of a GPU: one stream, a small arena of device memory, the graphs captured on them. Whether a program
// runs as a graph, on its slots, in pieces or in memory of the device's pool is decided at its launch: see
// ChoosePath.
#ifndef WARPLINE_SERVER_DEVICE_CUDA_LANE_H_
#define WARPLINE_SERVER_DEVICE_CUDA_LANE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "kernels/gpu/gate.h"
#include "kernels/gpu/handle.h"
#include "kernels/gpu/repointed_graph.h"
#include "kernels/gpu/stream_flag.h"
#include "server/device/bad_index_box.h"
#include "server/device/choose_path.h"
#include "server/device/cuda_backend.h"
#include "server/device/cuda_device.h"
#include "server/device/cuda_program.h"
#include "server/device/cut_program.h"
#include "server/device/graph_cache.h"

namespace warpline {

// `device` outlives the lane.
class CudaLane : public Lane {
 public:
  static absl::StatusOr<std::unique_ptr<CudaLane>> Create(CudaDevice& device,
                                                          const CudaBackendOptions& options,
                                                          Metrics& metrics);
  ~CudaLane() override;

  void Launch(const StagedProgram& staged, LaunchDone done) override;
  bool LaunchesAtOnce(const Program& program, const MemoryPlan& plan, std::string_view signature,
                      std::size_t device_bytes) const override;

 private:
  // Making a graph takes three captures, and a client may never send such a program again.
  static constexpr int kCallsBeforeGraph = 8;
  // An entry is made at once with all that the program's possible paths need. So a known signature never
  // needs another capture.
  struct Entry {
    Path alone = Path::kGraph;  // what to do with the device to itself, and beside other jobs
    Path among_others = Path::kGraph;
    std::optional<CudaGraph> plain;  // if either is kGraph
    std::optional<CudaGraph> timed;  // likewise, and if jobs are sampled at all
    std::optional<Cutting> cutting;  // if either is kBlocks
    std::size_t pool_bytes = 0;      // that were set aside of the device's pool, to run whole or in pieces
    std::vector<std::string_view> variants;
    // One a step, for each memory that its operands have lain in; empty where they have not.
    std::array<std::vector<KernelSeries>, kKernelMemories> series;
    std::vector<Histogram> roof_ratios;  // likewise of kDevice; null handles where no roof is known
    std::vector<Problem> problems;
    std::size_t input_bytes = 0, output_bytes = 0;  // that are copied
    // The launches as calls. With number kCallsBeforeGraph the calls become a graph, `repointed`, for one
    // path and one stream.
    int calls = 0;
    std::optional<gpu::RepointedGraph> repointed;
    Path repointed_path = Path::kCalls;
    cudaStream_t repointed_stream = nullptr;

    std::size_t GraphBytes() const {
      return (plain.has_value() ? plain->EstimatedBytes() : 0) +
             (timed.has_value() ? timed->EstimatedBytes() : 0) +
             (repointed.has_value() ? CudaGraph::EstimatedBytes(repointed->nodes()) : 0);
    }
  };
  // The state of one launch.
  struct Run {
    Path path = Path::kGraph;
    bool timed = false;
    KernelMemory memory = KernelMemory::kDevice;
    bool brief = false;  // whoever launches it waits for a flag; otherwise there is an event
    bool started_alone = false;
    bool prepared = false;    // for the first time, on this lane
    std::uint64_t order = 0;  // among the launches of the device
    Buffer block;             // of the device's pool, if the lane's memory is not enough
    Buffer peers;             // likewise, with copies of operands that lie on other devices
  };

  CudaLane(CudaDevice& device, const CudaBackendOptions& options, Metrics& metrics);
  absl::StatusOr<Entry> Build(const StagedProgram& staged);
  absl::Status CaptureGraphs(const StagedProgram& staged, Entry& entry);
  // Looks up the series of the entry's steps.
  void Describe(const Program& program, KernelMemory memory, Entry& entry);
  // On the slots or by calls, as the path says.
  absl::Status RunByCalls(const StagedProgram& staged, Entry& entry, const Run& run);
  absl::Status RunOnSlots(const StagedProgram& staged, const StepScalars* scalars, Entry& entry, bool timed);
  // Returns where a program that runs on its slots finds the scalars of its step: in its slot, or on the
  // device if they are the defaults. Null for steps that read none.
  const StepScalars* ScalarsOf(const StagedProgram& staged) const;
  // The addresses that may be others at the next launch: slots, the memory of bindings, scalars.
  using Bases = absl::InlinedVector<std::byte*, 6>;
  Bases BasesOf(const StagedProgram& staged, Path path) const;
  absl::Status RunCalls(const StagedProgram& staged, Entry& entry, const Run& run);
  absl::Status RunInPieces(const StagedProgram& staged, Entry& entry, const Run& run);
  // Returns whether no other program used the device between this program's launch and now.
  bool WasAlone(const Run& run) const { return run.started_alone && device_.launched.load() == run.order; }
  absl::Status EnsureTimingEvents(std::size_t count);
  bool IsTimeToTime();
  absl::Status Start(const StagedProgram& staged, LaunchDone& done);
  // Returns whether the program that was launched last has ended, or ends within some microseconds.
  bool EndsBriefly();
  absl::Status RecordEnd(cudaStream_t last);
  // Enqueues the program and, behind it, the flag or the event of its end. If it is timed and is not there at
  // once, it waits behind a gate.
  absl::Status Enqueue(const StagedProgram& staged, Entry& entry, Run& run);
  // Makes the graph of an entry that is launched as calls again and again. Without one the calls go on.
  Entry* MakeRepointed(const StagedProgram& staged, Entry* entry, Run& run);
  // Returns whether the launch can be that of the entry's graph.
  bool FitsRepointed(const StagedProgram& staged, const Entry& entry, const Run& run) const;
  // Enqueues copies of the operands that lie on other devices, and points the program at them. `bindings` is
  // memory for its own bindings then.
  absl::Status FetchPeers(StagedProgram& staged, Bindings& bindings, Run& run);
  // A block of the device's pool. Notes if the pool has the bytes, but in pieces.
  absl::StatusOr<Buffer> TakeBlock(std::size_t bytes);
  absl::Status EnqueueWork(const StagedProgram& staged, Entry& entry, Run& run);
  static KernelMemory MemoryOf(const MemoryPlan& plan, Path path);
  // The device's memory that this way to run the program takes beyond the lane's.
  std::size_t PoolBytesOf(const Entry& entry, Path path) const;
  // Waits for what a failed launch has left, which may still use the slots.
  void Drain(Path path, cudaStream_t stream);
  // Records nothing if the times contain time of the host.
  void RecordTimes(Entry& entry, const Run& run);
  void RecordKernel(Entry& entry, std::size_t step, const Run& run, double seconds);
  void RecordSteps(Entry& entry, const Run& run);
  void RecordWhole(Entry& entry, const Run& run);
  void RecordPieces(Entry& entry, const Run& run);
  double SecondsBetween(std::size_t first_event, std::size_t last_event) const;
  // Returns the kernel time of a step of a program that was run whole.
  double KernelSeconds(std::size_t step, Path path) const;
  // The priority of a graph's kernels is that of the stream on which they were captured.
  cudaStream_t StreamFor(const StagedProgram& staged, Path path) const {
    return staged.urgent && path != Path::kGraph ? urgent_stream_.get() : stream_.get();
  }
  std::span<std::byte> arena() const { return {static_cast<std::byte*>(arena_.get()), options_.lane_bytes}; }

  CudaDevice& device_;
  const CudaBackendOptions options_;
  Metrics& metrics_;
  TransferSeries h2d_, d2h_;
  Counter peer_bytes_;
  gpu::Stream stream_, urgent_stream_;  // one of them is in use at a time
  gpu::DeviceBytes arena_;
  std::optional<BadIndexBox> bad_index_;
  gpu::Event done_event_;
  std::optional<gpu::StreamFlag> done_flag_;  // of devices that use host pointers
  TimingEvents timing_;
  std::optional<gpu::Gate> gate_;  // of devices that use host pointers, if jobs are sampled at all
  GraphCache<Entry> cache_;
  bool pool_in_pieces_ = false;            // at the last launch, which failed by it
  int untimed_ = 0;                        // launches since one was timed
  std::optional<MonotonicTime> timed_at_;  // nothing before the first
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUDA_LANE_H_
