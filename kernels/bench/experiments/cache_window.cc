// cudaAccessPolicyWindow: part of the L2 set aside for what is read again and again.
#include <algorithm>
#include <cstddef>

#include "kernels/bench/experiments/pipeline.h"
#include "kernels/bench/experiments/pipeline_kernels.h"
#include "kernels/bench/harness/check.h"
#include "kernels/bench/harness/timing.h"
#include "kernels/gpu/random_data.h"

namespace warpline::bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// The limit on what persists is one of this process's context: others must not find it as it was left.
class PersistingLimit {
 public:
  PersistingLimit() = default;
  PersistingLimit(const PersistingLimit&) = delete;
  PersistingLimit& operator=(const PersistingLimit&) = delete;
  ~PersistingLimit() {
    cudaCtxResetPersistingL2Cache();
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0);
  }
  void Set(std::size_t bytes) {
    // One after the other, as what persists would persist in the other's turn too.
    Check(cudaCtxResetPersistingL2Cache(), "resetting the L2");
    Check(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, bytes), "setting L2 aside");
  }
};

// A stream of whose accesses to [base, base + bytes) this share persists in the L2, and all others pass
// through.
gpu::Stream CreateStreamWithWindow(void* base, std::size_t bytes, float hit_ratio) {
  gpu::Stream stream = Value(gpu::CreateStream());
  cudaStreamAttrValue value = {};
  value.accessPolicyWindow.base_ptr = base;
  value.accessPolicyWindow.num_bytes = bytes;
  value.accessPolicyWindow.hitRatio = hit_ratio;
  value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  Check(cudaStreamSetAttribute(stream.get(), cudaStreamAttributeAccessPolicyWindow, &value),
        "setting a window");
  return stream;
}

class Summation {
 public:
  Summation(const gpu::DeviceBytes& data, std::size_t bytes, int multiprocessors)
      : data_(static_cast<const std::uint32_t*>(data.get())),
        count_(static_cast<std::int64_t>(bytes / sizeof(std::uint32_t))),
        multiprocessors_(multiprocessors),
        sum_(Value(gpu::AllocateDevice(sizeof(unsigned)))) {}

  cudaError_t Beside(const void* hot, std::int64_t hot_count, cudaStream_t stream) const {
    if (cudaError_t error = cudaMemsetAsync(sum_.get(), 0, sizeof(unsigned), stream); error != cudaSuccess) {
      return error;
    }
    return LaunchSumBeside(data_, count_, static_cast<const std::uint32_t*>(hot), hot_count,
                           static_cast<unsigned*>(sum_.get()), multiprocessors_, stream);
  }
  // Computes the expected sum with another kernel, which reads first one buffer and then the other.
  unsigned Expect(const void* hot, std::int64_t hot_count, cudaStream_t stream) const {
    return SumOf(data_, count_, stream) +
           static_cast<unsigned>(count_ / hot_count) *
               SumOf(static_cast<const std::uint32_t*>(hot), hot_count, stream);
  }
  unsigned Result(cudaStream_t stream) const {
    unsigned sum = 0;
    Check(cudaMemcpyAsync(&sum, sum_.get(), sizeof(sum), cudaMemcpyDeviceToHost, stream), "reading a sum");
    Check(cudaStreamSynchronize(stream), "adding up");
    return sum;
  }

 private:
  unsigned SumOf(const std::uint32_t* data, std::int64_t count, cudaStream_t stream) const {
    Check(cudaMemsetAsync(sum_.get(), 0, sizeof(unsigned), stream), "adding up");
    Check(LaunchSumWords(data, count, static_cast<unsigned*>(sum_.get()), multiprocessors_, stream),
          "adding up");
    return Result(stream);
  }

  const std::uint32_t* data_;
  std::int64_t count_;
  int multiprocessors_;
  gpu::DeviceBytes sum_;
};

}  // namespace

Experiment CacheWindow(const Device& device, const PipelineOptions& options) {
  const auto most = static_cast<std::size_t>(device.properties.persistingL2CacheMaxSize);
  const auto widest = static_cast<std::size_t>(device.properties.accessPolicyMaxWindowSize);
  Experiment experiment{.name = "L2 persistence window",
                        .note =
                            "A kernel reads 512 MiB once and, beside each word, one of a hot buffer that it "
                            "walks over again and again. With: the hot buffer is the stream's access policy "
                            "window, as persisting, and everything else as streaming. GB/s counts all words "
                            "read, whoever serves them; a memset of one word is timed too. Sums were "
                            "compared with those of another kernel.",
                        .columns = {"hot_mib", "persisting_l2_mib", "us_without", "us_with", "gbps_without",
                                    "gbps_with", "speedup", "us_with_ratio_0.6", "speedup_with_ratio_0.6"}};
  if (most == 0) {
    experiment.note += " This GPU has no L2 that could be set aside.";
    return experiment;
  }
  cudaStream_t stream = device.stream.get();
  constexpr std::size_t kStreamed = 512 * kMiB;
  const gpu::DeviceBytes streamed = Value(gpu::AllocateDevice(kStreamed));
  Check(gpu::FillBits(streamed.get(), kStreamed, 11, stream), "filling a buffer");
  const Summation sum(streamed, kStreamed, device.context.traits.multiprocessors);
  PersistingLimit limit;
  // Powers of two, which divide the streamed buffer.
  for (std::size_t hot_bytes = 4 * kMiB; hot_bytes <= 64 * kMiB; hot_bytes *= 2) {
    if (hot_bytes > widest || hot_bytes > 2 * most) break;
    const gpu::DeviceBytes hot = Value(gpu::AllocateDevice(hot_bytes));
    Check(gpu::FillBits(hot.get(), hot_bytes, 13, stream), "filling a buffer");
    Check(cudaStreamSynchronize(stream), "filling the buffers");
    const auto hot_count = static_cast<std::int64_t>(hot_bytes / sizeof(std::uint32_t));
    const unsigned expected = sum.Expect(hot.get(), hot_count, stream);
    const gpu::Stream window = CreateStreamWithWindow(hot.get(), hot_bytes, 1.0f);
    // For buffers that are larger than what may persist: those lines that do are not thrown out by the
    // others.
    const gpu::Stream part_of_window = CreateStreamWithWindow(hot.get(), hot_bytes, 0.6f);
    double seconds[3];
    const cudaStream_t streams[] = {stream, window.get(), part_of_window.get()};
    for (int with = 0; with < 3; ++with) {
      cudaStream_t in = streams[with];
      limit.Set(with != 0 ? most : 0);  // without: all of the L2 is for everything
      const Launcher launchers[] = {[&](int, cudaStream_t s) { return sum.Beside(hot.get(), hot_count, s); }};
      // Timed as calls in the stream: a captured kernel would silently keep the window that was set at
      // capture time.
      std::vector<double> rounds;
      for (int round = 0; round < options.rounds + 1; ++round)
        rounds.push_back(SecondsOfOne(launchers[0], in));
      seconds[with] = Summarize(rounds, 1).median;
      if (sum.Result(in) != expected) throw Failure("L2 window: a sum is wrong");
    }
    const double gigabytes = 2.0 * kStreamed / 1e9;
    experiment.rows.push_back({static_cast<double>(hot_bytes / kMiB), static_cast<double>(most) / kMiB,
                               seconds[0] * 1e6, seconds[1] * 1e6, gigabytes / seconds[0],
                               gigabytes / seconds[1], seconds[0] / seconds[1], seconds[2] * 1e6,
                               seconds[0] / seconds[2]});
  }
  return experiment;
}

}  // namespace warpline::bench
