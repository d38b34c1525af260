#include "server/device/graph_cache.h"

#include <gtest/gtest.h>

namespace warpline {
namespace {

TEST(GraphCacheTest, FindsWhatWasInserted) {
  Metrics metrics;
  GraphCache<int> cache({.entries = 2, .bytes = 100}, metrics.graph_cache,
                        metrics.DeviceMemoryBytes(0, "graphs"));
  EXPECT_EQ(cache.Find('a'), nullptr);
  cache.Insert('a', 1, 10, 1);
  ASSERT_NE(cache.Find('a'), nullptr);
  EXPECT_EQ(*cache.Find('a'), 1);
}

TEST(GraphCacheTest, EvictsLeastRecentlyUsed) {
  Metrics metrics;
  GraphCache<int> cache({.entries = 2, .bytes = 100}, metrics.graph_cache,
                        metrics.DeviceMemoryBytes(0, "graphs"));
  cache.Insert('a', 1, 10, 1);
  cache.Insert('b', 2, 10, 1);
  cache.Find('a');
  cache.Insert('c', 3, 10, 1);
  EXPECT_EQ(cache.Find('b'), nullptr);
  EXPECT_NE(cache.Find('a'), nullptr);
  EXPECT_NE(cache.Find('c'), nullptr);
  EXPECT_EQ(metrics.graph_cache.evictions.Value(), 1);
  EXPECT_EQ(metrics.graph_cache.entries.Value(), 2);
}

TEST(GraphCacheTest, AnOwnerWithManyProgramsEvictsItsOwn) {
  Metrics metrics;
  GraphCache<int> cache({.entries = 4, .bytes = 100}, metrics.graph_cache,
                        metrics.DeviceMemoryBytes(0, "graphs"));
  cache.Insert('a', 1, 1, /*owner=*/1);
  for (const char key : {'b', 'c', 'd', 'e', 'f', 'g'}) cache.Insert(key, 2, 1, /*owner=*/2);
  EXPECT_NE(cache.Find('a'), nullptr);
  EXPECT_EQ(cache.Find('d'), nullptr);
  EXPECT_NE(cache.Find('g'), nullptr);
  EXPECT_EQ(cache.size(), 4u);
}

TEST(GraphCacheTest, BytesAreALimitToo) {
  Metrics metrics;
  GraphCache<int> cache({.entries = 10, .bytes = 100}, metrics.graph_cache,
                        metrics.DeviceMemoryBytes(0, "graphs"));
  cache.Insert('a', 1, 40, 1);
  cache.Insert('b', 2, 40, 1);
  cache.Insert('c', 3, 30, 1);
  EXPECT_EQ(cache.Find('a'), nullptr);
  EXPECT_EQ(cache.bytes(), 70u);
  cache.Insert('d', 4, 1000, 1);
  EXPECT_EQ(cache.size(), 1u);
  ASSERT_NE(cache.Find('d'), nullptr) << "the newest stays";
  cache.Insert('e', 5, 1, 1);
  EXPECT_EQ(cache.Find('d'), nullptr);
  EXPECT_EQ(cache.bytes(), 1u);
}

TEST(GraphCacheTest, GivesWhatItHoldsBackToTheGauges) {
  Metrics metrics;
  const Gauge bytes = metrics.DeviceMemoryBytes(0, "graphs");
  {
    GraphCache<int> cache({.entries = 4, .bytes = 100}, metrics.graph_cache, bytes);
    cache.Insert('a', 1, 30, 1);
    cache.Insert('b', 2, 20, 1);
    EXPECT_EQ(bytes.Value(), 50);
    EXPECT_EQ(metrics.graph_cache.entries.Value(), 2);
  }
  EXPECT_EQ(bytes.Value(), 0);
  EXPECT_EQ(metrics.graph_cache.entries.Value(), 0);
}

}  // namespace
}  // namespace warpline
