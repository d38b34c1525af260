#include "client/src/callback_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace warpline::client {
namespace {

TEST(CallbackThreadTest, RunsThemInOrderOnOneThread) {
  std::vector<int> order;
  std::thread::id thread;
  {
    CallbackThread callbacks;
    for (int i = 0; i < 100; ++i) {
      callbacks.Expect();
      callbacks.Run([&, i] {
        order.push_back(i);
        if (i > 0) {
          EXPECT_EQ(thread, std::this_thread::get_id());
        }
        thread = std::this_thread::get_id();
      });
    }
  }
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(CallbackThreadTest, WaitsForThoseThatAreExpected) {
  std::atomic<bool> ran = false;
  CallbackThread callbacks;
  callbacks.Expect();
  std::thread later([&] { callbacks.Run([&] { ran = true; }); });
  callbacks.Close();
  EXPECT_TRUE(ran);
  later.join();
}

}  // namespace
}  // namespace warpline::client
