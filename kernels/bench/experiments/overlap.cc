// Copies and kernels that overlap, or do not.
#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/bench/experiments/host_pipeline.h"
#include "kernels/bench/experiments/pipeline.h"
#include "kernels/bench/harness/check.h"
#include "kernels/bench/harness/timing.h"
#include "kernels/gpu/pinned_memory.h"

namespace warpline::bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr char kChunks[] =
    "Chunks are blocks of rows; of a transposition the result of one is a block of columns, put in place by "
    "cudaMemcpy2DAsync. Time from the first call until the host knows; every way's result was compared "
    "with a reference, bit for bit.";

// Input and result in pinned memory.
class PinnedTensors {
 public:
  explicit PinnedTensors(const HostPipeline& pipeline)
      : in_(Value(gpu::PinnedMemory::Allocate(pipeline.work().bytes()))),
        out_(Value(gpu::PinnedMemory::Allocate(pipeline.work().bytes()))) {
    pipeline.WriteInput(reinterpret_cast<float*>(in_.bytes().data()));
  }
  HostTensors tensors() {
    return {reinterpret_cast<float*>(in_.bytes().data()), reinterpret_cast<float*>(out_.bytes().data())};
  }

 private:
  gpu::PinnedMemory in_, out_;
};

void Synchronize(std::span<const gpu::Stream> streams) {
  for (const gpu::Stream& stream : streams) Check(cudaStreamSynchronize(stream.get()), "running a pipeline");
}

// One way to do the work, verified before it is timed against the others.
struct Way {
  std::vector<Experiment::Cell> cells;  // what describes it
  std::function<void()> run;
  std::function<void()> prepare = nullptr;
  HostTensors host;
};

// Rows of: the way's cells, ms, GB/s in each direction, speed-up over the first way.
void Measure(const HostPipeline& pipeline, std::span<const Way> ways, int rounds, Experiment& experiment) {
  std::vector<TimedCall> calls;
  for (const Way& way : ways) {
    pipeline.PoisonResult(way.host);
    if (way.prepare) way.prepare();
    way.run();
    pipeline.VerifyResult(way.host, std::get<std::string>(way.cells[0]));
    calls.push_back({way.run, way.prepare});
  }
  const std::vector<Timing> timings = TimeCallsInTurns(calls, rounds);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    std::vector<Experiment::Cell> row = ways[i].cells;
    const double seconds = timings[i].median;
    row.insert(row.end(), {seconds * 1e3, static_cast<double>(pipeline.work().bytes()) / seconds / 1e9,
                           timings[0].median / seconds});
    experiment.rows.push_back(std::move(row));
  }
}

PipelineWork Transposition(const PipelineOptions& options) { return {options.rows, options.columns, 0}; }
PipelineWork Elementwise(const Device& device, const PipelineOptions& options) {
  return {options.rows, options.columns, StepsAsLongAsACopy(device, options.rows, options.columns)};
}

std::string Describe(const PipelineWork& work) {
  std::string text = absl::StrCat(work.name(), " f32 ", work.rows, "x", work.columns);
  if (work.steps > 0) {
    absl::StrAppend(&text, " (", work.steps, " additions an element: as long as a copy one way)");
  }
  return text;
}

Experiment Overlap(const Device& device, const PipelineWork& work, int rounds, std::vector<int> stream_counts,
                   std::vector<std::size_t> chunks) {
  const HostPipeline pipeline(device, work);
  PinnedTensors pinned(pipeline);
  const HostTensors host = pinned.tensors();
  const std::vector<gpu::Stream> all =
      CreateStreams(*std::max_element(stream_counts.begin(), stream_counts.end()));
  Experiment experiment{.name = absl::StrCat("overlap: ", Describe(work)),
                        .note = kChunks,
                        .columns = {"way", "streams", "chunk_mib", "ms", "gbps_each_way", "speedup"}};
  std::vector<gpu::GraphExec> graphs;
  std::vector<Way> ways;
  ways.push_back({{"sequential", 1.0, static_cast<double>(work.bytes()) / kMiB},
                  [&, stream = all[0].get()] {
                    pipeline.Enqueue(host, stream);
                    Check(cudaStreamSynchronize(stream), "running a pipeline");
                  },
                  nullptr,
                  host});
  for (const int count : stream_counts) {
    const std::span<const gpu::Stream> streams = std::span(all).first(static_cast<std::size_t>(count));
    for (const std::size_t chunk : chunks) {
      if (chunk * kMiB > work.bytes()) continue;
      const auto cells = [&](const char* way) {
        return std::vector<Experiment::Cell>{way, static_cast<double>(count), static_cast<double>(chunk)};
      };
      ways.push_back({cells("streams"),
                      [&pipeline, host, chunk, streams] {
                        pipeline.EnqueueChunks(host, chunk * kMiB, streams);
                        Synchronize(streams);
                      },
                      nullptr, host});
      graphs.push_back(pipeline.Capture(host, chunk * kMiB, streams));
      ways.push_back({cells("graph"),
                      [exec = graphs.back().get(), stream = streams[0].get()] {
                        Check(cudaGraphLaunch(exec, stream), "launching a graph");
                        Check(cudaStreamSynchronize(stream), "running a graph");
                      },
                      nullptr, host});
    }
  }
  Measure(pipeline, ways, rounds, experiment);
  return experiment;
}

// Memory that the runtime does not know: its copies are staged, and the host waits for them.
struct PageableTensors {
  explicit PageableTensors(const HostPipeline& pipeline)
      : in(pipeline.work().bytes() / sizeof(float)), out(in.size()) {
    pipeline.WriteInput(in.data());
  }
  HostTensors tensors() { return {in.data(), out.data()}; }
  std::vector<float> in, out;
};

// Bounded: the driver must never be asked for more managed memory than the card has free.
class ManagedTensors {
 public:
  static constexpr std::size_t kMaxBytes = 64 * kMiB;

  explicit ManagedTensors(const HostPipeline& pipeline) : bytes_(pipeline.work().bytes()) {
    if (2 * bytes_ > kMaxBytes || 2 * bytes_ > FreeBytes()) throw Failure("too much managed memory");
    void* pointer = nullptr;
    Check(cudaMallocManaged(&pointer, bytes_), "allocating managed memory");
    in_.reset(pointer);
    Check(cudaMallocManaged(&pointer, bytes_), "allocating managed memory");
    out_.reset(pointer);
    pipeline.WriteInput(static_cast<float*>(in_.get()));
  }
  HostTensors tensors() const { return {static_cast<float*>(in_.get()), static_cast<float*>(out_.get())}; }

  void Prefetch(const void* pointer, bool to_host, cudaStream_t stream) const {
    const cudaMemLocation location = {to_host ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice, 0};
    Check(cudaMemPrefetchAsync(pointer, bytes_, location, 0, stream), "prefetching");
  }
  // Resets the pages as if the host had just written the input; the result's pages are on the device.
  void Reset(cudaStream_t stream) const {
    Prefetch(in_.get(), /*to_host=*/true, stream);
    Prefetch(out_.get(), /*to_host=*/false, stream);
    Check(cudaStreamSynchronize(stream), "prefetching");
  }
  // The host reads a byte of each page of the result, which brings it back.
  void TouchResult() const {
    const auto* bytes = static_cast<const volatile char*>(out_.get());
    for (std::size_t i = 0; i < bytes_; i += 4096) static_cast<void>(bytes[i]);
  }

 private:
  std::size_t bytes_;
  gpu::DeviceBytes in_, out_;
};

Experiment HostMemory(const Device& device, const PipelineWork& work, int rounds, bool with_managed) {
  const HostPipeline pipeline(device, work);
  PinnedTensors pinned(pipeline);
  PageableTensors pageable(pipeline);
  const std::vector<gpu::Stream> streams = CreateStreams(4);
  cudaStream_t stream = streams[0].get();
  const std::size_t chunk = std::max(work.bytes() / 16, kMiB);
  Experiment experiment{
      .name = absl::StrCat("host memory: ", Describe(work)),
      .note =
          "Four streams take chunks of a sixteenth. Mapped: the kernel itself reads and writes host memory. "
          "Every way's result was compared with a reference, bit for bit.",
      .columns = {"memory", "way", "ms", "gbps_each_way", "speedup"}};
  std::vector<Way> ways;
  const auto add = [&](const char* memory, const char* way, HostTensors host, std::function<void()> run,
                       std::function<void()> prepare = nullptr) {
    ways.push_back({{memory, way}, std::move(run), std::move(prepare), host});
  };
  const auto wait = [&streams] { Synchronize(streams); };
  for (const auto& [memory, host] :
       {std::pair{"pageable", pageable.tensors()}, std::pair{"pinned", pinned.tensors()}}) {
    add(memory, "sequential", host, [&, host = host] {
      pipeline.Enqueue(host, stream);
      wait();
    });
    add(memory, "4 streams", host, [&, host = host] {
      pipeline.EnqueueChunks(host, chunk, streams);
      wait();
    });
  }
  const HostTensors host = pinned.tensors();
  void *in = nullptr, *out = nullptr;
  Check(cudaHostGetDevicePointer(&in, const_cast<float*>(host.in), 0), "mapping pinned memory");
  Check(cudaHostGetDevicePointer(&out, host.out, 0), "mapping pinned memory");
  add("mapped", "no copies", host, [&, in, out] {
    pipeline.EnqueueKernel(static_cast<const float*>(in), static_cast<float*>(out), work.rows, stream);
    wait();
  });
  std::optional<ManagedTensors> managed;
  if (with_managed && device.properties.concurrentManagedAccess != 0) {
    managed.emplace(pipeline);
    const HostTensors tensors = managed->tensors();
    const auto reset = [&] { managed->Reset(stream); };
    add(
        "managed", "prefetch", tensors,
        [&, tensors] {
          managed->Prefetch(tensors.in, /*to_host=*/false, stream);
          pipeline.EnqueueKernel(tensors.in, tensors.out, work.rows, stream);
          managed->Prefetch(tensors.out, /*to_host=*/true, stream);
          wait();
          managed->TouchResult();
        },
        reset);
    add(
        "managed", "page faults", tensors,
        [&, tensors] {
          pipeline.EnqueueKernel(tensors.in, tensors.out, work.rows, stream);
          wait();
          managed->TouchResult();
        },
        reset);
  }
  Measure(pipeline, ways, rounds, experiment);
  return experiment;
}

}  // namespace

std::vector<Experiment> OverlapExperiments(const Device& device, const PipelineOptions& options) {
  std::vector<Experiment> experiments;
  for (const PipelineWork& work : {Elementwise(device, options), Transposition(options)}) {
    experiments.push_back(Overlap(device, work, options.rounds, {1, 2, 4, 8}, {1, 4, 16, 64}));
  }
  return experiments;
}

Experiment FourStreams(const Device& device, const PipelineOptions& options) {
  Experiment both{.name = "one stream, and four with chunks of 16 MiB",
                  .note = kChunks,
                  .columns = {"work", "way", "streams", "chunk_mib", "ms", "gbps_each_way", "speedup"}};
  for (const PipelineWork& work : {Elementwise(device, options), Transposition(options)}) {
    for (auto& row : Overlap(device, work, options.rounds, {4}, {16}).rows) {
      row.insert(row.begin(), work.name());
      both.rows.push_back(std::move(row));
    }
  }
  return both;
}

std::vector<Experiment> HostMemoryExperiments(const Device& device, const PipelineOptions& options) {
  // In and out together are what managed memory may be.
  PipelineOptions small = options;
  small.columns = std::min<std::int64_t>(options.columns, 4096);
  small.rows = std::min<std::int64_t>(options.rows, 2048);
  std::vector<Experiment> experiments;
  for (const PipelineWork& work : {Elementwise(device, options), Transposition(options)}) {
    experiments.push_back(HostMemory(device, work, options.rounds, /*with_managed=*/false));
  }
  for (const PipelineWork& work : {Elementwise(device, small), Transposition(small)}) {
    experiments.push_back(HostMemory(device, work, options.rounds, /*with_managed=*/true));
  }
  return experiments;
}

Experiment DefaultStreamTrap(const Device& device, const PipelineOptions& options) {
  constexpr int kStreams = 4;
  const HostPipeline pipeline(device, Elementwise(device, options));
  PinnedTensors pinned(pipeline);
  const HostTensors host = pinned.tensors();
  const std::vector<gpu::Stream> non_blocking = CreateStreams(kStreams);
  std::vector<gpu::Stream> blocking;
  for (int i = 0; i < kStreams; ++i) {
    cudaStream_t stream = nullptr;
    Check(cudaStreamCreate(&stream), "creating a stream");
    blocking.emplace_back(stream);
  }
  const gpu::DeviceBytes word = Value(gpu::AllocateDevice(sizeof(float)));
  const std::size_t chunk = std::max(pipeline.work().bytes() / 16, kMiB);
  Experiment experiment{
      .name = absl::StrCat("default-stream trap: ", Describe(pipeline.work())),
      .note = absl::StrCat("Four streams, chunks of a sixteenth. After each chunk a kernel that "
                           "writes one word goes into the legacy default stream, or nothing "
                           "does. ",
                           kChunks),
      .columns = {"streams", "default_stream", "ms", "gbps_each_way", "speedup"}};
  std::vector<Way> ways;
  for (const auto& [name, streams] : {std::pair{"cudaStreamNonBlocking", &non_blocking},
                                      std::pair{"cudaStreamDefault", &std::as_const(blocking)}}) {
    for (const bool between : {false, true}) {
      ways.push_back({{name, between ? "a tiny kernel after each chunk" : "nothing"},
                      [&, streams = streams, between] {
                        pipeline.EnqueueChunks(host, chunk, *streams,
                                               between ? static_cast<float*>(word.get()) : nullptr);
                        Synchronize(*streams);
                        Check(cudaStreamSynchronize(cudaStreamLegacy), "waiting for the default stream");
                      },
                      nullptr,
                      host});
    }
  }
  Measure(pipeline, ways, options.rounds, experiment);
  return experiment;
}

}  // namespace warpline::bench
