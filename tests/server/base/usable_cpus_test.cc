#include "server/base/usable_cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace warpline {
namespace {

TEST(CpusOfQuotaTest, DividesTheQuotaByThePeriod) {
  EXPECT_EQ(CpusOfQuota("150000 100000"), 1.5);
  EXPECT_EQ(CpusOfQuota("400000 100000\n"), 4);
}

TEST(CpusOfQuotaTest, NoQuotaIsZero) {
  for (const char* text : {"max 100000", "-1 100000", "", " ", "100000", "100000 0"}) {
    EXPECT_EQ(CpusOfQuota(text), 0) << text;
  }
}

TEST(UsableCpusTest, FollowsTheAffinityMask) {
  EXPECT_GE(UsableCpus(), 1);
  int of_one = 0;
  std::thread([&of_one] {
    cpu_set_t all, one;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof(all), &all);
    for (int i = 0; CPU_COUNT(&one) == 0; ++i) {
      if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    }
    sched_setaffinity(0, sizeof(one), &one);  // of this thread alone
    of_one = UsableCpus();
  }).join();
  EXPECT_EQ(of_one, 1);
}

}  // namespace
}  // namespace warpline
