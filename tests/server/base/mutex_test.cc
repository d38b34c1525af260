#include "server/base/mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace warpline {
namespace {

// Threads that take items from a queue, and how often one of them woke up.
class Takers {
 public:
  explicit Takers(int count) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { Take(); });
    MutexLock lock(&mutex_);
    mutex_.Await([&] { return waiting_ == count; });
  }
  ~Takers() {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
    }
    for (std::thread& thread : threads_) thread.join();
  }
  // Adds an item and waits until it has been taken and every thread waits again.
  void Serve() {
    MutexLock lock(&mutex_);
    ++items_;
    const int all = static_cast<int>(threads_.size());
    mutex_.Await([&] { return items_ == 0 && waiting_ == all; });
  }
  int looks() const { return looks_; }

 private:
  void Take() {
    const std::thread::id self = std::this_thread::get_id();
    for (;;) {
      MutexLock lock(&mutex_);
      ++waiting_;
      // Others evaluate the condition too, when they unlock; a look of this thread means that it woke up.
      mutex_.Await([&] {
        looks_ += std::this_thread::get_id() == self;
        return items_ > 0 || stopping_;
      });
      --waiting_;
      if (items_ == 0) return;
      --items_;
    }
  }

  Mutex mutex_;
  int items_ = 0, waiting_ = 0;
  bool stopping_ = false;
  std::atomic<int> looks_ = 0;
  std::vector<std::thread> threads_;
};

TEST(MutexTest, OneItemWakesOneOfTheThreadsThatWaitForIt) {
  constexpr int kThreads = 8, kItems = 200;
  Takers takers(kThreads);
  const int before = takers.looks();
  for (int i = 0; i < kItems; ++i) takers.Serve();
  // Once when it wakes and once when it waits again. The system may wake a thread for nothing now and then.
  EXPECT_LE(takers.looks() - before, 2 * kItems + kItems / 10);
}

TEST(MutexTest, EveryItemOfManyIsTaken) {
  Mutex mutex;
  int items = 0, taken = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 1000; ++n) {
        MutexLock lock(&mutex);
        mutex.Await([&] { return items > 0; });
        --items;
        ++taken;
      }
    });
  }
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 1000; ++n) {
        MutexLock lock(&mutex);
        ++items;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 4000);
}

TEST(MutexTest, AConditionThatHoldsForSeveralWakesThemAll) {
  Mutex mutex;
  bool open = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      MutexLock lock(&mutex);
      mutex.Await([&] { return open; });
    });
  }
  {
    MutexLock lock(&mutex);
    open = true;
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(MutexTest, ADeadlineEndsTheWait) {
  Mutex mutex;
  MutexLock lock(&mutex);
  EXPECT_FALSE(mutex.AwaitUntil([] { return false; }, After(absl::Milliseconds(1))));
  EXPECT_TRUE(mutex.AwaitUntil([] { return true; }, MonotonicClock::now()));
}

}  // namespace
}  // namespace warpline
