#include "client/bench/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "client/cli/args.h"

namespace warpline::client {
namespace {

using testing::HasSubstr;

absl::StatusOr<BenchFlags> Flags(const std::vector<std::string>& words) {
  CLI::App app;
  CommonFlags common;
  BenchFlags flags;
  common.AddTo(app);
  flags.AddTo(app, common);
  RETURN_IF_ERROR(Parse(app, words).status());
  RETURN_IF_ERROR(common.Complete(app));
  return flags.Completed(common);
}

TEST(BenchFlagsTest, RefusesMoreResponsesInFlightThanMemoryHolds) {
  const auto flags = Flags({"--shape=8192x8192", "--rate=10"});
  EXPECT_TRUE(IsUsageError(flags.status()));
  EXPECT_EQ(
      flags.status().message(),
      "--concurrency=1024 (the default with --rate): responses of 268435456 bytes each, at most 17179869184 "
      "bytes together, allow 64");
  EXPECT_TRUE(Flags({"--shape=8192x8192", "--rate=10", "--concurrency=64"}).ok());
  EXPECT_FALSE(Flags({"--shape=8192x8192", "--concurrency=65"}).ok());
  EXPECT_TRUE(Flags({"--shape=1024x1024", "--rate=10"}).ok());
  EXPECT_TRUE(Flags({"--shape=0x8192", "--rate=10"}).ok());
  EXPECT_TRUE(IsUsageError(Flags({"--shape=4294967296x4294967296"}).status()));
}

TEST(BenchFlagsTest, KnowsTheSizeOfResponses) {
  EXPECT_EQ(*Flags({"--op=echo", "--shape=3x5"})->ResultBytes(), 60u);
  EXPECT_EQ(*Flags({"--op=gemm", "--shape=3x5x1000", "--dtype=f64"})->ResultBytes(), 120u);
  EXPECT_EQ(*Flags({"--op=gemm", "--shape=3x5", "--dtype=i8"})->ResultBytes(), 60u);
  EXPECT_EQ(*Flags({"--op=reduce", "--shape=3x5"})->ResultBytes(), 8u);
  EXPECT_EQ(*Flags({"--op=reduce", "--shape=3x5x7", "--axes=-1,0"})->ResultBytes(), 40u);
}

TEST(BenchFlagsTest, SaysWhereTheArraysAre) {
  EXPECT_EQ(Flags({})->Title(), "transpose f32[32,32], inline, 1 channel, 1 in flight");
  EXPECT_EQ(
      Flags({"--op=gemm", "--server=unix:/w", "--transport=shm", "--resident=b", "--keep", "--channels=2"})
          ->Title(),
      "gemm f32[32,32,32], shm, b resident, result kept, 2 channels, 2 in flight");
  EXPECT_TRUE(Flags({"--op=gemm", "--resident=a,b"})->IsResident("a"));
  EXPECT_FALSE(Flags({"--op=gemm", "--resident=b"})->IsResident("a"));
  // Nothing comes back that would need memory here.
  EXPECT_TRUE(Flags({"--shape=8192x8192", "--rate=10", "--keep"}).ok());
  for (const char* flag : {"--transport=stream", "--resident=a", "--resident=x,x", "--resident="}) {
    EXPECT_TRUE(IsUsageError(Flags({flag}).status())) << flag;
  }
  for (const char* flag : {"--transport=shm", "--resident=x", "--keep"}) {
    EXPECT_TRUE(IsUsageError(Flags({"--op=echo", flag}).status())) << flag;
  }
}

TEST(BenchFlagsTest, SharesMemoryIfItIsToldWhere) {
  const absl::Status unknown = Flags({"--transport=shm", "--server=host:1"}).status();
  EXPECT_TRUE(IsUsageError(unknown));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("--regions"));
  EXPECT_TRUE(Flags({"--transport=shm", "--server=host:1", "--regions=/r"})->shared);
  const absl::Status unused = Flags({"--server=host:1", "--regions=/r"}).status();
  EXPECT_TRUE(IsUsageError(unused));
  EXPECT_THAT(std::string(unused.message()), HasSubstr("--transport shm"));
}

}  // namespace
}  // namespace warpline::client
