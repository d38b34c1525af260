#include "server/device/graph_cache.h"

#include <gtest/gtest.h>

namespace warpline {
namespace {

TEST(GraphCacheTest, FindsWhatWasInserted) {
  Metrics metrics;
  GraphCache<int> cache(2, metrics.graph_cache);
  EXPECT_EQ(cache.Find("a"), nullptr);
  cache.Insert("a", 1);
  ASSERT_NE(cache.Find("a"), nullptr);
  EXPECT_EQ(*cache.Find("a"), 1);
  EXPECT_EQ(metrics.graph_cache.hits.Value(), 2);
  EXPECT_EQ(metrics.graph_cache.misses.Value(), 1);
}

TEST(GraphCacheTest, EvictsLeastRecentlyUsed) {
  Metrics metrics;
  GraphCache<int> cache(2, metrics.graph_cache);
  cache.Insert("a", 1);
  cache.Insert("b", 2);
  cache.Find("a");
  cache.Insert("c", 3);
  EXPECT_EQ(cache.Find("b"), nullptr);
  EXPECT_NE(cache.Find("a"), nullptr);
  EXPECT_NE(cache.Find("c"), nullptr);
  EXPECT_EQ(metrics.graph_cache.evictions.Value(), 1);
  EXPECT_EQ(metrics.graph_cache.entries.Value(), 2);
}

TEST(GraphCacheTest, GivesItsEntriesBackToTheGauge) {
  Metrics metrics;
  { GraphCache<int>(4, metrics.graph_cache).Insert("a", 1); }
  EXPECT_EQ(metrics.graph_cache.entries.Value(), 0);
}

}  // namespace
}  // namespace warpline
