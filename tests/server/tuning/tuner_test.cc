#include "server/tuning/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/problem_text.h"

namespace warpline {
namespace {

using testing::ElementsAre;

constexpr char kProduct[] = "gemm f32 64x64x64";
constexpr char kSum[] = "sum f32 4096 all";

// The behaviour of a fake device for one kind of problem.
struct Behaviour {
  std::vector<std::string_view> candidates;
  std::vector<double> seconds;  // -1: wrong results; 0: cannot run; -2: the device fails
};

class FakeTrial : public Trial {
 public:
  FakeTrial(Behaviour behaviour, std::atomic<int>& disturbances)
      : behaviour_(std::move(behaviour)), disturbances_(disturbances) {}
  std::span<const std::string_view> candidates() const override { return behaviour_.candidates; }
  absl::StatusOr<std::optional<double>> Time(std::size_t candidate) override {
    const double seconds = behaviour_.seconds[candidate];
    if (seconds == 0) return absl::UnimplementedError("not for this");
    if (seconds == -2) return absl::InternalError("the device is ill");
    if (seconds < 0) return absl::DataLossError("wrong");
    if (disturbances_.fetch_sub(1) > 0) return std::nullopt;
    return seconds;
  }

 private:
  const Behaviour behaviour_;
  std::atomic<int>& disturbances_;
};

struct FakeDevice {
  std::map<std::string, Behaviour> behaviours;
  std::atomic<bool> quiet = true;
  std::atomic<int> disturbances = 0;
  std::atomic<int> impatience = 0;  // trials that end because others are busy
  std::atomic<int> prepared = 0;
};

class FakeWorkbench : public Workbench {
 public:
  explicit FakeWorkbench(FakeDevice& device) : device_(device) {}
  bool AwaitQuiet(const std::function<bool()>& stopping, MonotonicTime deadline) override {
    // A trial is given back sooner than its problem.
    if (deadline != kNever && device_.impatience.fetch_sub(1) > 0) return false;
    while (!device_.quiet && !stopping() && MonotonicClock::now() < deadline) std::this_thread::yield();
    return device_.quiet && !stopping();
  }
  absl::StatusOr<std::unique_ptr<Trial>> Prepare(const Problem& problem) override {
    ++device_.prepared;
    const auto found = device_.behaviours.find(ProblemText(problem));
    if (found == device_.behaviours.end()) return absl::OutOfRangeError("too large");
    return std::make_unique<FakeTrial>(found->second, device_.disturbances);
  }

 private:
  FakeDevice& device_;
};

class TunerTest : public testing::Test {
 protected:
  // Settles the problems, one after the other.
  void Tune(std::initializer_list<const char*> problems) {
    Tuner tuner(
        std::make_unique<FakeWorkbench>(device_), choices_,
        [&](const std::string& problem, const TunedChoice& choice) {
          settled_.push_back(problem + ": " + choice.untuned + " > " + choice.variant);
        },
        metrics_.Tuning(0));
    for (const char* problem : problems) tuner.Offer(*ParseProblem(problem));
    ASSERT_TRUE(tuner.AwaitIdle(MonotonicClock::now() + std::chrono::seconds(30)));
  }
  double Counted(const char* result) {
    return result == std::string("kept")      ? metrics_.Tuning(0).kept.Value()
           : result == std::string("changed") ? metrics_.Tuning(0).changed.Value()
                                              : metrics_.Tuning(0).failed.Value();
  }

  FakeDevice device_;
  Metrics metrics_;
  TunedChoices choices_;
  std::vector<std::string> settled_;
};

TEST_F(TunerTest, PublishesTheFastest) {
  device_.behaviours[kProduct] = {{"cublas", "gemv", "cublas:2"}, {1, 0.9, 0.5}};
  Tune({kProduct});
  EXPECT_EQ(choices_.Find(kProduct), "cublas:2");
  EXPECT_EQ(choices_.version(), 1u);
  EXPECT_THAT(settled_, ElementsAre(std::string(kProduct) + ": cublas > cublas:2"));
  EXPECT_EQ(Counted("changed"), 1);
  EXPECT_EQ(metrics_.Tuning(0).waiting.Value(), 0);
}

TEST_F(TunerTest, WhatIsTheFastestAlreadyIsWrittenDownAndPublishesNothing) {
  device_.behaviours[kProduct] = {{"cublas", "gemv"}, {1, 1}};
  Tune({kProduct});
  EXPECT_EQ(choices_.Find(kProduct), "");
  EXPECT_EQ(choices_.version(), 0u);
  EXPECT_THAT(settled_, ElementsAre(std::string(kProduct) + ": cublas > cublas"));
  EXPECT_EQ(Counted("kept"), 1);
}

TEST_F(TunerTest, SettlesAProblemOnce) {
  device_.behaviours[kProduct] = {{"cublas", "gemv"}, {1, 0.5}};
  Tune({kProduct, kProduct, kProduct});
  EXPECT_EQ(device_.prepared, 1);
}

TEST_F(TunerTest, GoesOnBehindAProblemThatItCannotTry) {
  device_.behaviours[kSum] = {{"vectorized", "cub"}, {1, 0.5}};
  Tune({kProduct, kSum});
  EXPECT_EQ(choices_.Find(kSum), "cub");
  EXPECT_EQ(Counted("failed"), 1);
}

TEST_F(TunerTest, WrongResultsNeverWin) {
  device_.behaviours[kProduct] = {{"cublas", "cublas:2", "cublas:3", "cublas:4"}, {1, -1, 0, 0.8}};
  Tune({kProduct});
  EXPECT_EQ(choices_.Find(kProduct), "cublas:4");
}

TEST_F(TunerTest, OfAProblemWithOneCandidateNothingIsWrittenDown) {
  device_.behaviours[kSum] = {{"vectorized"}, {1}};
  Tune({kSum});
  EXPECT_TRUE(settled_.empty());
  EXPECT_EQ(Counted("kept"), 1);
}

TEST_F(TunerTest, TimesThatWereDisturbedDoNotCount) {
  device_.behaviours[kProduct] = {{"cublas", "gemv"}, {1, 0.5}};
  device_.disturbances = 100;
  Tune({kProduct});
  EXPECT_EQ(choices_.Find(kProduct), "gemv");
}

TEST_F(TunerTest, AnErrorOfTheDeviceSettlesNothing) {
  device_.behaviours[kProduct] = {{"cublas", "cublas:2", "cublas:3"}, {1, -2, 0.5}};
  Tune({kProduct});
  EXPECT_EQ(choices_.Find(kProduct), "");
  EXPECT_TRUE(settled_.empty());
  EXPECT_EQ(Counted("failed"), 1);
  EXPECT_EQ(Counted("kept"), 0);
}

TEST_F(TunerTest, WithoutATimeOfWhatRunsUntunedNothingIsSettled) {
  device_.behaviours[kProduct] = {{"cublas", "cublas:2"}, {0, 0.5}};
  Tune({kProduct});
  EXPECT_TRUE(settled_.empty());
  EXPECT_EQ(Counted("failed"), 1);
}

TEST_F(TunerTest, ATrialThatOthersInterruptIsMadeAnewLater) {
  device_.behaviours[kProduct] = {{"cublas", "gemv"}, {1, 0.5}};
  device_.impatience = 2;
  Tune({kProduct});
  EXPECT_EQ(device_.prepared, 3);
  EXPECT_EQ(choices_.Find(kProduct), "gemv");
  EXPECT_EQ(metrics_.Tuning(0).waiting.Value(), 0);
}

TEST_F(TunerTest, LeavesEmptyResultsAlone) {
  GemmProblem empty;
  empty.n = 4, empty.k = 4, empty.lda = 4, empty.ldb = 4;
  Tuner tuner(std::make_unique<FakeWorkbench>(device_), choices_, nullptr, metrics_.Tuning(0));
  tuner.Offer(empty);
  EXPECT_EQ(tuner.waiting(), 0u);
}

TEST_F(TunerTest, WhatIsKnownIsNotTuned) {
  device_.behaviours[kProduct] = {{"cublas", "gemv"}, {1, 0.5}};
  Tuner tuner(std::make_unique<FakeWorkbench>(device_), choices_, nullptr, metrics_.Tuning(0));
  tuner.Know(kProduct);
  tuner.Offer(*ParseProblem(kProduct));
  EXPECT_EQ(tuner.waiting(), 0u);
}

TEST_F(TunerTest, EndsAtOnceWhileTheDeviceIsBusy) {
  device_.quiet = false;
  device_.behaviours[kProduct] = {{"cublas", "gemv"}, {1, 0.5}};
  Tuner tuner(std::make_unique<FakeWorkbench>(device_), choices_, nullptr, metrics_.Tuning(0));
  tuner.Offer(*ParseProblem(kProduct));
  EXPECT_EQ(tuner.waiting(), 1u);
  EXPECT_FALSE(tuner.AwaitIdle(MonotonicClock::now() + std::chrono::milliseconds(10)));
}

TEST_F(TunerTest, RemembersSoManyProblemsAndNoMore) {
  device_.quiet = false;
  Tuner tuner(std::make_unique<FakeWorkbench>(device_), choices_, nullptr, metrics_.Tuning(0));
  for (std::size_t i = 0; i < Tuner::kMaxProblems + 10; ++i) {
    tuner.Offer(*ParseProblem("sum f32 " + std::to_string(i + 1) + " all"));
  }
  EXPECT_EQ(tuner.waiting(), Tuner::kMaxProblems);
}

}  // namespace
}  // namespace warpline
