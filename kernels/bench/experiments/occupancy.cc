// Occupancy experiments: what fits on a multiprocessor at a time, and its effect.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/bench/experiments/pipeline.h"
#include "kernels/bench/experiments/pipeline_kernels.h"
#include "kernels/bench/harness/check.h"
#include "kernels/bench/harness/reference.h"
#include "kernels/bench/harness/timing.h"
#include "kernels/bench/suites/cases.h"
#include "kernels/gpu/random_data.h"

namespace warpline::bench {
namespace {

// A square f32 matrix on the device, another for results, and what they are compared with. Two of each, so
// that the L2 of no GPU holds what is read next.
class Buffers {
 public:
  Buffers(const Device& device, std::int64_t size) : device_(device), size_(size) {
    for (int i = 0; i < 2; ++i) {
      in_.push_back(Value(gpu::AllocateDevice(bytes())));
      out_.push_back(Value(gpu::AllocateDevice(bytes())));
      Check(gpu::FillBits(in_.back().get(), bytes(), 17 + static_cast<std::uint64_t>(i), device.stream.get()),
            "filling a buffer");
    }
    want_ = Value(gpu::AllocateDevice(bytes()));
    differences_ = Value(gpu::AllocateDevice(sizeof(Differences)));
  }
  std::size_t bytes() const { return static_cast<std::size_t>(size_ * size_) * sizeof(float); }
  std::int64_t size() const { return size_; }
  const float* in(int slot) const {
    return static_cast<const float*>(in_[static_cast<std::size_t>(slot)].get());
  }
  float* out(int slot) const { return static_cast<float*>(out_[static_cast<std::size_t>(slot)].get()); }
  float* want() const { return static_cast<float*>(want_.get()); }

  // Median seconds of a launch, whose result on slot 0 must be what is in want().
  double SecondsOf(const Launcher& launch, int rounds) const {
    cudaStream_t stream = device_.stream.get();
    Differences differences;
    auto* device = static_cast<Differences*>(differences_.get());
    Check(gpu::Poison(out(0), bytes(), stream), "poisoning a result");
    Check(launch(0, stream), "launching");
    Check(cudaMemcpyAsync(device, &differences, sizeof(differences), cudaMemcpyHostToDevice, stream),
          "comparing");
    Check(CompareBytes(out(0), want(), bytes(), device, stream), "comparing");
    Check(cudaMemcpyAsync(&differences, device, sizeof(differences), cudaMemcpyDeviceToHost, stream),
          "comparing");
    Check(cudaStreamSynchronize(stream), "comparing");
    if (differences.count != 0) throw Failure("occupancy: a result is wrong");
    const Launcher launchers[] = {launch};
    return TimeInTurns(launchers, 2, rounds, stream)[0].median;
  }

 private:
  const Device& device_;
  std::int64_t size_;
  std::vector<gpu::DeviceBytes> in_, out_;
  gpu::DeviceBytes want_, differences_;
};

constexpr std::int64_t kSize = 8192;

}  // namespace

Experiment Carveout(const Device& device, const PipelineOptions& options) {
  const Buffers buffers(device, kSize);
  Check(ReferenceTranspose(MakeTranspose(DType::kF32, kSize, kSize), buffers.in(0), buffers.want(),
                           device.stream.get()),
        "computing the reference");
  Experiment experiment{.name = absl::StrCat("shared-memory carve-out: transpose f32 ", kSize, "x", kSize),
                        .note =
                            "A padded tile of 32x33 (4.1 KiB) or 64x65 (16.3 KiB) in blocks of 256 threads; "
                            "the carve-out is a hint, per cent of the L1. Blocks by "
                            "cudaOccupancyMaxActiveBlocksPerMultiprocessor. Results verified.",
                        .columns = {"tile", "carveout_percent", "blocks_per_sm", "us", "gbps"}};
  for (const int side : {32, 64}) {
    for (const int percent : {0, 10, 25, 50, 75, 100}) {
      Check(SetCarveout(side, percent), "setting a carve-out");
      int blocks = 0;
      Check(BlocksPerMultiprocessor(side, &blocks), "asking for the occupancy");
      const double seconds = buffers.SecondsOf(
          [&](int slot, cudaStream_t stream) {
            return LaunchPaddedTile(side, buffers.in(slot), buffers.out(slot), kSize, kSize, stream);
          },
          options.rounds);
      experiment.rows.push_back({absl::StrCat(side, "x", side + 1), static_cast<double>(percent),
                                 static_cast<double>(blocks), seconds * 1e6,
                                 2 * static_cast<double>(buffers.bytes()) / seconds / 1e9});
    }
    Check(SetCarveout(side, cudaSharedmemCarveoutDefault), "setting a carve-out");
  }
  return experiment;
}

Experiment Occupancy(const Device& device, const PipelineOptions& options) {
  const Buffers buffers(device, kSize);
  Check(cudaMemcpyAsync(buffers.want(), buffers.in(0), buffers.bytes(), cudaMemcpyDeviceToDevice,
                        device.stream.get()),
        "computing the reference");
  int min_grid = 0, advised = 0;
  Check(AdviseCopyBlocks(&min_grid, &advised), "asking for a block size");
  const double threads_per_sm = device.properties.maxThreadsPerMultiProcessor;
  Experiment experiment{
      .name = absl::StrCat("occupancy: copy of ", kSize, "x", kSize, " f32, one element a thread"),
      .note = absl::StrCat("cudaOccupancyMaxPotentialBlockSize advises ", advised, " threads and at least ",
                           min_grid, " blocks. Results verified."),
      .columns = {"threads", "blocks_per_sm", "occupancy_percent", "us", "gbps"}};
  for (const int threads : {32, 64, 128, 256, 512, 768, 1024}) {
    int blocks = 0;
    Check(CopyBlocksPerMultiprocessor(threads, &blocks), "asking for the occupancy");
    const double seconds = buffers.SecondsOf(
        [&](int slot, cudaStream_t stream) {
          return LaunchCopyBlocks(threads, buffers.in(slot), buffers.out(slot), kSize * kSize, stream);
        },
        options.rounds);
    experiment.rows.push_back({static_cast<double>(threads), static_cast<double>(blocks),
                               100 * blocks * threads / threads_per_sm, seconds * 1e6,
                               2 * static_cast<double>(buffers.bytes()) / seconds / 1e9});
  }
  return experiment;
}

}  // namespace warpline::bench
