// Tests what a profiler sees of the ranges. This binary has the ranges whatever the build has, and a recorder
// in place of the profiler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "server/device/cpu_backend.h"
#include "server/observe/nvtx.h"
#include "server/schedule/scheduler.h"
#include "tests/testing/nvtx_recorder.h"

namespace warpline {
namespace {

using Kind = NvtxEvent::Kind;
using ::testing::ElementsAre;

std::vector<std::string> Lines(const std::vector<NvtxEvent>& events) {
  static constexpr const char* kKinds[] = {"push ", "pop ", "start ", "end ", "mark "};
  std::vector<std::string> lines;
  lines.reserve(events.size());
  for (const NvtxEvent& event : events) {
    lines.push_back(kKinds[static_cast<int>(event.kind)] + event.text);
  }
  return lines;
}

class NvtxRecordedTest : public ::testing::Test {
 protected:
  void SetUp() override { TakeNvtxEvents(); }
  void TearDown() override { EXPECT_EQ(OpenNvtxRanges(), 0); }
};

TEST_F(NvtxRecordedTest, RangesOfAThreadNest) {
  const auto number = nvtx::RequestNumber::Next();
  {
    const nvtx::Range outer(nvtx::Name::kConvert, number);
    const nvtx::Range inner(nvtx::Name::kAdmission);
  }
  const std::vector<NvtxEvent> events = TakeNvtxEvents();
  EXPECT_THAT(Lines(events), ElementsAre("push convert", "push admission", "pop admission", "pop convert"));
  EXPECT_EQ(events[0].payload, number.value());
  EXPECT_EQ(events[1].payload, 0);
  for (const NvtxEvent& event : events) {
    EXPECT_EQ(event.domain, "warpline");
    EXPECT_TRUE(event.registered);
  }
}

TEST_F(NvtxRecordedTest, ASpanningRangeEndsOnceOnAnyThread) {
  {
    nvtx::SpanningRange range(nvtx::Name::kDevice, nvtx::RequestNumber::Next());
    nvtx::SpanningRange holder = std::move(range);
    std::thread([holder = std::move(holder)]() mutable { holder.End(); }).join();
  }
  const std::vector<NvtxEvent> events = TakeNvtxEvents();
  ASSERT_THAT(Lines(events), ElementsAre("start device", "end device"));
  EXPECT_NE(events[0].thread, events[1].thread);
}

TEST_F(NvtxRecordedTest, AnotherInItsPlaceEndsASpanningRange) {
  {
    nvtx::SpanningRange range(nvtx::Name::kQueue, {});
    range = nvtx::SpanningRange(nvtx::Name::kDevice, {});
  }
  EXPECT_THAT(Lines(TakeNvtxEvents()), ElementsAre("start queue", "start device", "end queue", "end device"));
}

TEST_F(NvtxRecordedTest, AMarkTakesItsText) {
  const auto number = nvtx::RequestNumber::Next();
  nvtx::Mark(std::string("id-of-a-request").c_str(), number);
  const std::vector<NvtxEvent> events = TakeNvtxEvents();
  ASSERT_THAT(Lines(events), ElementsAre("mark id-of-a-request"));
  EXPECT_EQ(events[0].payload, number.value());
}

TEST_F(NvtxRecordedTest, NamesDiffer) {
  for (int i = 0; i < nvtx::kNames; ++i) const nvtx::Range range(static_cast<nvtx::Name>(i));
  std::set<std::string> texts;
  for (const NvtxEvent& event : TakeNvtxEvents()) texts.insert(event.text);
  EXPECT_EQ(texts.size(), nvtx::kNames);
  EXPECT_FALSE(texts.contains("?"));
}

// The engine on the CPU, with one lane.
class EngineRangesTest : public NvtxRecordedTest {
 protected:
  void SetUp() override {
    backend_ = *CreateCpuBackend({.lane_bytes = 1 << 20});
    memory_.resize(1 << 20);
    pool_ = std::make_unique<StagingPool>(memory_, memory_.size(), metrics_);
    workers_ = std::make_unique<WorkerPool>(1);
    scheduler_ = *Scheduler::Create({.lanes_per_device = 1}, *backend_, *pool_, *workers_, metrics_);
    NvtxRecordedTest::SetUp();
  }

  // A transpose that is small, and yet not so small that it would run inside Submit.
  struct Submitted {
    Scheduler::JobId id = 0;
    std::uint64_t number = 0;
    std::future<Result> result;
  };
  Submitted Submit(std::function<void()> fill = [] {}) {
    const TransposeProblem problem{DType::kF32, {64, 256}, {1, 0}};
    const std::size_t bytes = 64 * 256 * 4;
    Program program;
    program.tensors = {{DType::kF32, problem.shape, bytes}, {DType::kF32, problem.OutputShape(), bytes}};
    program.num_inputs = 1;
    program.steps.push_back({.problem = problem, .variant = {}, .inputs = {0}, .output = 1, .scalars = {}});
    program.outputs = {1};
    Job job;
    Plan plan = MakePlan(std::move(program));
    plan.compiled = backend_->Compile(plan.program, plan.memory)->program;
    job.plan = std::make_shared<const Plan>(std::move(plan));
    job.bindings = MakeBindings(job.plan->memory);
    job.copy_in = [fill = std::move(fill)](std::span<std::byte> region, int, int) {
      std::fill(region.begin(), region.end(), std::byte{0});
      fill();
    };
    job.number = nvtx::RequestNumber::Next();
    Submitted submitted{.number = job.number.value()};
    auto promise = std::make_shared<std::promise<Result>>();
    submitted.result = promise->get_future();
    job.done = [promise](Result result) { promise->set_value(std::move(result)); };
    submitted.id = scheduler_->Submit(std::move(job));
    return submitted;
  }

  // Returns the lines of one request, in order. Ends the lane's thread first, so that its ranges are closed.
  std::vector<std::string> LinesOf(std::uint64_t number) {
    scheduler_.reset();
    if (events_.empty()) events_ = TakeNvtxEvents();
    std::vector<NvtxEvent> of_request;
    std::copy_if(events_.begin(), events_.end(), std::back_inserter(of_request),
                 [number](const NvtxEvent& event) { return event.payload == number; });
    return Lines(of_request);
  }

  Metrics metrics_;
  std::vector<std::byte> memory_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<StagingPool> pool_;
  std::unique_ptr<WorkerPool> workers_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<NvtxEvent> events_;
};

TEST_F(EngineRangesTest, AJobPassesItsStages) {
  Submitted job = Submit();
  ASSERT_TRUE(job.result.get().status.ok());
  // The CPU computes inside the launch.
  EXPECT_THAT(LinesOf(job.number),
              ElementsAre("start queue", "end queue", "push stage", "pop stage", "push launch",
                          "start device", "end device", "push complete", "pop complete", "pop launch"));
  const auto step = std::find_if(events_.begin(), events_.end(),
                                 [](const NvtxEvent& event) { return event.text == "step"; });
  EXPECT_NE(step, events_.end());
}

TEST_F(EngineRangesTest, ACancelledJobLeavesTheQueue) {
  std::promise<void> go_on;
  Submitted running = Submit([&] { go_on.get_future().wait(); });
  Submitted waiting = Submit();
  scheduler_->Cancel(waiting.id, absl::CancelledError("gone"));
  EXPECT_EQ(waiting.result.get().status.code(), absl::StatusCode::kCancelled);
  go_on.set_value();
  ASSERT_TRUE(running.result.get().status.ok());
  EXPECT_THAT(LinesOf(waiting.number), ElementsAre("start queue", "end queue"));
}

}  // namespace
}  // namespace warpline
