// Tests what Completion promises about its callbacks. Needs no GPU: querying no event at all is an error on
// every machine, and an error is an outcome, too.
#include "server/device/completion.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

namespace warpline {
namespace {

TEST(CompletionTest, EveryCallbackIsCalledWithTheOutcome) {
  std::atomic<int> called = 0;
  {
    Completion completion(0, nullptr);
    for (int i = 0; i < 1000; ++i) {
      completion.Watch(nullptr, [&](const absl::Status& status) { called += status.ok() ? 0 : 1; });
    }
  }
  EXPECT_EQ(called.load(), 1000);
}

// Some callbacks run on workers, others on the thread that polls: both may watch the next event while the
// destructor waits.
TEST(CompletionTest, EventsThatCallbacksWatchAreWaitedForAtTheEnd) {
  constexpr int kChains = 64, kLength = 20;
  std::atomic<int> called = 0;
  std::function<void(Completion&, int)> watch = [&](Completion& completion, int left) {
    completion.Watch(nullptr, [&, left](const absl::Status&) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      ++called;
      if (left > 1) watch(completion, left - 1);
    });
  };
  {
    Completion completion(0, nullptr);
    for (int i = 0; i < kChains; ++i) watch(completion, kLength);
  }
  EXPECT_EQ(called.load(), kChains * kLength);
}

TEST(CompletionTest, WhatACallbackHoldsIsGoneAtTheEnd) {
  auto held = std::make_shared<int>(0);
  {
    Completion completion(0, nullptr);
    for (int i = 0; i < 100; ++i) completion.Watch(nullptr, [held](const absl::Status&) {});
  }
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace warpline
