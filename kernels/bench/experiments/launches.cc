// Measures the time to launch: calls in a stream against a graph of the same kernels.
#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/bench/experiments/pipeline.h"
#include "kernels/bench/experiments/pipeline_kernels.h"
#include "kernels/bench/harness/check.h"
#include "kernels/bench/harness/timing.h"
#include "kernels/gpu/capture.h"
#include "kernels/gpu/handle.h"

namespace warpline::bench {
namespace {

constexpr int kMinRounds = 200;  // a round is microseconds

void LaunchAll(unsigned* word, int kernels, cudaStream_t stream) {
  for (int i = 0; i < kernels; ++i) Check(LaunchCount(word, stream), "launching");
}

}  // namespace

Experiment Launches(const Device& device, const PipelineOptions& options) {
  Experiment experiment{.name = "launches",
                        .note =
                            "Kernels of one thread that add one to a word, each after the other; the host's "
                            "clock until the last has ended, and until the calls have returned. The word was "
                            "compared with how many there were.",
                        .columns = {"kernels", "us_stream", "us_graph", "us_calls_stream", "us_calls_graph"}};
  cudaStream_t stream = device.stream.get();
  const gpu::DeviceBytes memory = Value(gpu::AllocateDevice(sizeof(unsigned)));
  auto* word = static_cast<unsigned*>(memory.get());
  const auto wait = [stream] { Check(cudaStreamSynchronize(stream), "waiting"); };
  for (const int kernels : {1, 4, 16, 64}) {
    gpu::Capture capture = Value(gpu::Capture::Begin(stream));
    LaunchAll(word, kernels, stream);
    const gpu::GraphExec graph = Value(gpu::Instantiate(Value(std::move(capture).End())));
    const auto replay = [&] { Check(cudaGraphLaunch(graph.get(), stream), "launching a graph"); };
    Check(cudaMemsetAsync(word, 0, sizeof(*word), stream), "clearing a word");
    // The last two time only the calls. The kernels that they launch are waited for before the next round.
    const TimedCall calls[] = {{.run = [&] { LaunchAll(word, kernels, stream), wait(); }, .prepare = wait},
                               {.run = [&] { replay(), wait(); }, .prepare = wait},
                               {.run = [&] { LaunchAll(word, kernels, stream); }, .prepare = wait},
                               {.run = replay, .prepare = wait}};
    const std::vector<Timing> timings = TimeCallsInTurns(calls, std::max(kMinRounds, options.rounds));
    unsigned counted = 0, launched = 0;
    for (const Timing& timing : timings) launched += static_cast<unsigned>((timing.rounds + 1) * kernels);
    wait();
    Check(cudaMemcpy(&counted, word, sizeof(counted), cudaMemcpyDeviceToHost), "reading a word");
    if (counted != launched) throw Failure("launches: not as many were run as there were");  // one warms up
    experiment.rows.push_back({static_cast<double>(kernels), timings[0].median * 1e6, timings[1].median * 1e6,
                               timings[2].median * 1e6, timings[3].median * 1e6});
  }
  return experiment;
}

}  // namespace warpline::bench
