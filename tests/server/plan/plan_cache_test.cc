#include "server/plan/plan_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace warpline {
namespace {

PlanPtr AnyPlan() { return std::make_shared<const Plan>(); }

TEST(PlanCacheTest, FindsWhatWasInsertedAndCounts) {
  Metrics metrics;
  PlanCache cache(1 << 20, metrics);
  EXPECT_EQ(cache.Find("a"), nullptr);
  const PlanPtr plan = AnyPlan();
  cache.Insert("a", plan);
  EXPECT_EQ(cache.Find("a"), plan);
  EXPECT_EQ(metrics.plan_cache.hits.Value(), 1);
  EXPECT_EQ(metrics.plan_cache.misses.Value(), 1);
  EXPECT_EQ(metrics.plan_cache.entries.Value(), 1);
}

TEST(PlanCacheTest, KeepsTheFirstOfTwoPlansOfOneKey) {
  Metrics metrics;
  PlanCache cache(1 << 20, metrics);
  const PlanPtr plan = AnyPlan();
  cache.Insert("a", plan);
  cache.Insert("a", AnyPlan());
  EXPECT_EQ(cache.Find("a"), plan);
}

TEST(PlanCacheTest, DropsTheLeastRecentlyUsedForLackOfRoom) {
  Metrics metrics;
  PlanCache cache(64 << 10, metrics);
  cache.Insert("kept", AnyPlan());
  int inserted = 0;
  while (metrics.plan_cache.evictions.Value() == 0) {
    ASSERT_NE(cache.Find("kept"), nullptr);
    cache.Insert("filler " + std::to_string(inserted++), AnyPlan());
    ASSERT_LT(inserted, 10000);
  }
  EXPECT_NE(cache.Find("kept"), nullptr);
  EXPECT_EQ(cache.Find("filler 0"), nullptr);
}

TEST(PlanCacheTest, DoesNotKeepAPlanThatTakesTooMuchOfIt) {
  Metrics metrics;
  PlanCache cache(64 << 10, metrics);
  cache.Insert(std::string(4096, 'x'), AnyPlan());
  EXPECT_EQ(metrics.plan_cache.entries.Value(), 0);
}

TEST(PlanCacheTest, APlanInUseOutlivesItsEntry) {
  Metrics metrics;
  PlanPtr used;
  {
    PlanCache cache(64 << 10, metrics);
    cache.Insert("a", AnyPlan());
    used = cache.Find("a");
  }
  EXPECT_EQ(used.use_count(), 1);
}

}  // namespace
}  // namespace warpline
