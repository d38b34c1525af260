#include "server/plan/plan_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

namespace warpline {
namespace {

constexpr std::size_t kCacheBytes = 256 << 10;
constexpr OwnerId kAlice = 1, kBob = 2, kCarol = 3;

PlanPtr AnyPlan() { return std::make_shared<const Plan>(); }

class PlanCacheTest : public ::testing::Test {
 protected:
  void Insert(const std::string& key, OwnerId owner = kAlice) {
    cache_.Insert(key, AnyPlan(), owner, now_);
    ASSERT_LE(cache_.BytesOf(kAlice) + cache_.BytesOf(kBob) + cache_.BytesOf(kCarol), kCacheBytes);
  }
  bool Has(const std::string& key) { return cache_.Find(key, now_) != nullptr; }
  // New plans, none of which is used again.
  void Flood(OwnerId owner, int plans) {
    for (int i = 0; i < plans; ++i) Insert("flood " + std::to_string(flood_++), owner);
  }
  static std::string Key(const std::string& name, int i) { return name + " " + std::to_string(i); }

  Metrics metrics_;
  PlanCache cache_{kCacheBytes, metrics_};
  MonotonicTime now_;
  int flood_ = 0;
};

TEST_F(PlanCacheTest, FindsWhatWasInsertedAndCounts) {
  EXPECT_EQ(cache_.Find("a", now_), nullptr);
  const PlanPtr plan = AnyPlan();
  cache_.Insert("a", plan, kAlice, now_);
  EXPECT_EQ(cache_.Find("a", now_), plan);
  EXPECT_EQ(metrics_.plan_cache.hits.Value(), 1);
  EXPECT_EQ(metrics_.plan_cache.misses.Value(), 1);
  EXPECT_EQ(metrics_.plan_cache.entries.Value(), 1);
}

TEST_F(PlanCacheTest, KeepsTheFirstOfTwoPlansOfOneKey) {
  const PlanPtr plan = AnyPlan();
  cache_.Insert("a", plan, kAlice, now_);
  const std::size_t charged = cache_.BytesOf(kAlice);
  cache_.Insert("a", AnyPlan(), kAlice, now_);
  cache_.Insert("a", AnyPlan(), kBob, now_);
  EXPECT_EQ(cache_.Find("a", now_), plan);
  EXPECT_EQ(cache_.BytesOf(kAlice), charged);
  EXPECT_EQ(cache_.BytesOf(kBob), 0u);
  EXPECT_EQ(cache_.owners(), 1u);
}

TEST_F(PlanCacheTest, DropsTheLeastRecentlyUsedForLackOfRoom) {
  Insert("kept");
  int inserted = 0;
  while (metrics_.plan_cache.evictions.Value() == 0) {
    ASSERT_TRUE(Has("kept"));
    Insert(Key("filler", inserted++));
    ASSERT_LT(inserted, 10000);
  }
  EXPECT_TRUE(Has("kept"));
  EXPECT_FALSE(Has("filler 0"));
  EXPECT_TRUE(Has("filler 1"));
}

TEST_F(PlanCacheTest, DoesNotKeepAPlanThatTakesTooMuchOfIt) {
  Insert(std::string(kCacheBytes / 16, 'x'));
  EXPECT_EQ(metrics_.plan_cache.entries.Value(), 0);
  EXPECT_EQ(cache_.owners(), 0u);
}

TEST_F(PlanCacheTest, APlanInUseOutlivesItsEntry) {
  PlanPtr used;
  {
    PlanCache cache(kCacheBytes, metrics_);
    cache.Insert("a", AnyPlan(), kAlice, now_);
    used = cache.Find("a", now_);
  }
  EXPECT_EQ(used.use_count(), 1);
}

TEST_F(PlanCacheTest, AFloodNeverEvictsWhatAnotherOwnerHasWithinItsShare) {
  // Bob was first, and uses his plans no more.
  int plans = 0;
  while (cache_.BytesOf(kBob) < kCacheBytes / 2 - kCacheBytes / 16) Insert(Key("bob's", plans++), kBob);
  ASSERT_GT(plans, 10);
  Flood(kAlice, 5000);
  for (int i = 0; i < plans; ++i) EXPECT_TRUE(Has(Key("bob's", i))) << i;
  EXPECT_GT(cache_.BytesOf(kAlice), kCacheBytes / 2 - kCacheBytes / 16);
}

TEST_F(PlanCacheTest, AnOwnerBeyondItsShareLosesItToOneThatComesLater) {
  Flood(kAlice, 5000);
  ASSERT_GT(cache_.BytesOf(kAlice), kCacheBytes - kCacheBytes / 16);
  int plans = 0;
  while (cache_.BytesOf(kBob) < kCacheBytes / 2 - kCacheBytes / 16) Insert(Key("bob's", plans++), kBob);
  for (int i = 0; i < plans; ++i) EXPECT_TRUE(Has(Key("bob's", i))) << i;
  Flood(kCarol, 5000);
  for (OwnerId owner : {kAlice, kBob, kCarol})
    EXPECT_GT(cache_.BytesOf(owner), kCacheBytes / 3 - kCacheBytes / 16);
}

TEST_F(PlanCacheTest, ChargesGoWithTheEntries) {
  Insert("bob's", kBob);
  EXPECT_GT(cache_.BytesOf(kBob), 0u);
  now_ += PlanCache::kIdle + std::chrono::seconds(1);
  Flood(kAlice, 5000);
  EXPECT_FALSE(Has("bob's"));
  EXPECT_EQ(cache_.BytesOf(kBob), 0u);
  EXPECT_EQ(cache_.owners(), 1u);
}

TEST_F(PlanCacheTest, WhatNobodyHasUsedForLongGoesFirst) {
  for (int i = 0; i < 10; ++i) Insert(Key("bob's", i), kBob);
  Insert("used", kBob);
  now_ += PlanCache::kIdle;
  EXPECT_TRUE(Has("used"));
  now_ += std::chrono::seconds(1);
  const double before = metrics_.plan_cache.evictions.Value();
  while (metrics_.plan_cache.evictions.Value() < before + 10) Flood(kAlice, 1);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(Has(Key("bob's", i))) << i;
  Flood(kAlice, 5000);
  EXPECT_TRUE(Has("used"));
}

TEST_F(PlanCacheTest, ManyOwnersLeaveNothingBehind) {
  constexpr int kOwners = 100'000;
  for (int i = 0; i < kOwners; ++i) {
    cache_.Insert(Key("of", i), AnyPlan(), static_cast<OwnerId>(i), now_);
    ASSERT_TRUE(Has(Key("of", i)));
  }
  EXPECT_EQ(static_cast<double>(cache_.owners()), metrics_.plan_cache.entries.Value());
  EXPECT_LT(cache_.owners(), kCacheBytes / sizeof(Plan));
}

}  // namespace
}  // namespace warpline
