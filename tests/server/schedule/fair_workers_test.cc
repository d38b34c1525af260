#include "server/schedule/fair_workers.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

namespace warpline {
namespace {

constexpr Claimant kWorkerA{.share = 1}, kWorkerB{.share = 2};

TEST(FairWorkersTest, AClaimantWithManyTasksDoesNotHoldUpAnother) {
  std::string order;
  {
    FairWorkers workers(1);
    std::promise<void> go;
    workers.Post(kWorkerA, [future = go.get_future().share()] { future.wait(); });
    for (int i = 0; i < 20; ++i) workers.Post(kWorkerA, [&] { order += 'a'; });
    for (int i = 0; i < 3; ++i) workers.Post(kWorkerB, [&] { order += 'b'; });
    go.set_value();
  }
  EXPECT_EQ(order.size(), 23u) << "every task has run at the end";
  EXPECT_LT(order.rfind('b'), 8u) << order;
}

}  // namespace
}  // namespace warpline
