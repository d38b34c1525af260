// Lanes of device 0 that run programs in one way, for benchmarks that compare ways slot to slot, without
// scheduler and gRPC.
#ifndef WARPLINE_TESTS_BENCH_WAY_H_
#define WARPLINE_TESTS_BENCH_WAY_H_

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/device/cuda_backend.h"
#include "tests/bench/engine.h"

namespace warpline::bench {

inline constexpr std::size_t kNever = std::size_t{1} << 50;
inline constexpr std::size_t kMiB = std::size_t{1} << 20;
inline constexpr std::size_t kSlotBytes = 260 * kMiB;
inline constexpr int kLanes = 4;

// A slot for input and one for output, large enough for every shape here, the former full of random words.
struct Slots {
  explicit Slots(Backend& backend) : memory(*backend.AllocateHost(2 * kSlotBytes)) {
    std::mt19937 random(1);
    auto* words = reinterpret_cast<std::uint32_t*>(memory.bytes().data());
    for (std::size_t i = 0; i < kSlotBytes / 4; ++i) words[i] = random() & 0x3fffffff;
  }
  std::span<std::byte> In(std::size_t bytes, int lane) const {
    return memory.bytes().subspan(static_cast<std::size_t>(lane) * kSlotBytes / kLanes, bytes);
  }
  std::span<std::byte> Out(std::size_t bytes, int lane) const {
    return memory.bytes().subspan(kSlotBytes + static_cast<std::size_t>(lane) * kSlotBytes / kLanes, bytes);
  }

  Buffer memory;
};

// A program with what a lane wants to know of it.
struct Case {
  explicit Case(Program what)
      : program(std::move(what)),
        plan(PlanMemory(program)),
        signature(Signature(program)),
        bindings(MakeBindings(plan)) {}
  Program program;
  MemoryPlan plan;
  std::string signature;
  Bindings bindings;
};

// A backend whose options force one way to run programs.
class Way {
 public:
  Way(std::string name, const PathLimits& paths, const CutOptions& cutting, int lanes,
      std::size_t arena_bytes, int timing_sample = 0)
      : name_(std::move(name)) {
    auto backend = CreateCudaBackend({.devices = {0},
                                      .lane_bytes = arena_bytes,
                                      .paths = paths,
                                      .cutting = cutting,
                                      .timing_sample = timing_sample,
                                      .metrics = &metrics_});
    if (!backend.ok()) {
      std::printf("skipped: %s\n", std::string(backend.status().message()).c_str());
      std::exit(0);
    }
    backend_ = std::move(*backend);
    for (int i = 0; i < lanes; ++i) {
      auto lane = backend_->CreateLane(0);
      if (!lane.ok()) Fail(lane.status());
      lanes_.push_back(std::move(*lane));
    }
  }

  // Seconds from the launch to the call of `done`.
  double Run(const Case& each, const Slots& slots, int lane = 0) {
    std::atomic<bool> done = false;
    const std::size_t device_bytes = backend_->DeviceBytes(each.program, each.plan);
    const absl::Time start = absl::Now();
    lanes_[static_cast<std::size_t>(lane)]->Launch(
        {&each.program, &each.plan, each.signature, each.bindings, slots.In(each.plan.input_bytes, lane),
         slots.Out(each.plan.output_bytes, lane), device_bytes},
        [&done](const LaunchReport& report) {
          if (!report.status.ok()) Fail(report.status);
          done.store(true, std::memory_order_release);
        });
    while (!done.load(std::memory_order_acquire)) {
    }
    return absl::ToDoubleSeconds(absl::Now() - start);
  }

  // Bytes a second, of both directions together, of all lanes at once with one thread each.
  double BytesPerSecond(const Case& each, const Slots& slots, int rounds) {
    for (int lane = 0; lane < kLanes; ++lane) Run(each, slots, lane);  // captures the graph
    const absl::Time start = absl::Now();
    std::vector<std::thread> threads;
    for (int lane = 0; lane < kLanes; ++lane) {
      threads.emplace_back([&, lane] {
        for (int i = 0; i < rounds; ++i) Run(each, slots, lane);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return static_cast<double>(each.plan.input_bytes + each.plan.output_bytes) * kLanes * rounds /
           absl::ToDoubleSeconds(absl::Now() - start);
  }

  const std::string& name() const { return name_; }
  Backend& backend() { return *backend_; }

 private:
  std::string name_;
  Metrics metrics_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace warpline::bench

#endif  // WARPLINE_TESTS_BENCH_WAY_H_
