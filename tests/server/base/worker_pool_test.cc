#include "server/base/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <vector>

namespace warpline {
namespace {

TEST(WorkerPoolTest, RunsEveryTaskBeforeItEnds) {
  std::atomic<int> ran = 0;
  {
    WorkerPool pool(3);
    for (int i = 0; i < 1000; ++i) pool.Post([&] { ++ran; });
  }
  EXPECT_EQ(ran, 1000);
}

TEST(WorkerPoolTest, OneThreadKeepsTheOrder) {
  std::vector<int> order;
  {
    WorkerPool pool(1);
    for (int i = 0; i < 100; ++i) pool.Post([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(WorkerPoolTest, TasksRunSideBySide) {
  WorkerPool pool(2);
  std::latch both(2), done(2);
  for (int i = 0; i < 2; ++i) {
    pool.Post([&] {
      both.arrive_and_wait();  // would never return on one thread
      done.count_down();
    });
  }
  done.wait();
}

TEST(WorkerPoolTest, ATaskMayPostAnother) {
  std::atomic<int> ran = 0;
  {
    WorkerPool pool(1);
    std::latch posted(1);
    pool.Post([&] {
      pool.Post([&] { ++ran; });
      posted.count_down();
    });
    posted.wait();
  }
  EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace warpline
