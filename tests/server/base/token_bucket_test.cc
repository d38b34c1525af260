#include "server/base/token_bucket.h"

#include <gtest/gtest.h>

namespace warpline {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

const MonotonicTime kStart = MonotonicTime() + hours(1000);

TEST(TokenBucketTest, StartsFull) {
  TokenBucket bucket({.capacity = 10, .per_second = 1}, kStart);
  EXPECT_TRUE(bucket.is_full(kStart));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(bucket.Take(kStart)) << i;
  EXPECT_FALSE(bucket.Take(kStart));
}

TEST(TokenBucketTest, WhatIsPutBackNeverExceedsTheCapacity) {
  TokenBucket bucket({.capacity = 10}, kStart);
  bucket.Take(kStart);
  bucket.Put(1000);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(bucket.Take(kStart)) << i;
  EXPECT_FALSE(bucket.Take(kStart));
}

TEST(TokenBucketTest, TimeRefillsItAndAClockThatIsBehindTakesNothing) {
  TokenBucket bucket({.capacity = 2, .per_second = 1}, kStart);
  EXPECT_TRUE(bucket.Take(kStart));
  EXPECT_TRUE(bucket.Take(kStart - hours(1)));
  EXPECT_FALSE(bucket.has_token(kStart - hours(1)));
  EXPECT_TRUE(bucket.has_token(kStart + seconds(1)));
  EXPECT_TRUE(bucket.is_full(kStart + hours(1)));
}

TEST(TokenBucketTest, WithoutDebtTokensComeBackWhileMoreAreAskedFor) {
  TokenBucket bucket({.capacity = 1, .per_second = 1}, kStart);
  int taken = 0;
  for (int i = 0; i <= 100; ++i) taken += bucket.Take(kStart + i * std::chrono::milliseconds(100)) ? 1 : 0;
  EXPECT_GE(taken, 10);
  EXPECT_LE(taken, 11);
}

TEST(TokenBucketTest, ADebtIsPaidByTimeAndHasALimit) {
  TokenBucket bucket({.capacity = 5, .per_second = 1, .debt_max = 3}, kStart);
  for (int i = 0; i < 100; ++i) bucket.Take(kStart);
  EXPECT_FALSE(bucket.has_token(kStart + seconds(3)));
  EXPECT_TRUE(bucket.has_token(kStart + seconds(4)));
}

}  // namespace
}  // namespace warpline
