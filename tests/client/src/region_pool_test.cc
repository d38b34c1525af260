// The pool of a client against a server in the test's process: which regions it opens, and who has what.
#include "client/src/region_pool.h"

#include <gmock/gmock.h>
#include <grpc/grpc.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "tests/client/src/fake_regions.h"
#include "tests/testing/patience.h"
#include "tests/testing/status_matchers.h"

namespace warpline::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr auto kSignedMiB = static_cast<std::int64_t>(kMiB);

class RegionPoolTest : public ::testing::Test {
 protected:
  // A client's parts, with small regions.
  struct Pool {
    Pool(const std::string& target, const ClientOptions& options, const PoolTuning& tuning)
        : regions(target, options), connection(target, options), pool(regions, connection, options, tuning) {}
    RegionClient regions;
    Connection connection;
    RegionPool pool;
  };

  static void SetUpTestSuite() { grpc_init(); }

  RegionPoolTest() : path_("/tmp/warpline_region_pool_test." + std::to_string(::getpid())) {
    server_.emplace(path_);
  }

  RegionPool& Make(std::size_t max_bytes = 64 * kMiB, absl::Duration pause = absl::ZeroDuration(),
                   SharedMemory mode = SharedMemory::kAuto, const std::string& socket = "") {
    const ClientOptions options{.region_socket = socket, .shared_memory = mode, .pool_bytes = max_bytes};
    pools_.push_back(std::make_unique<Pool>(
        "unix:" + path_, options,
        PoolTuning{
            .region_bytes = kMiB, .large_region_bytes = 4 * kMiB, .pause = pause, .long_pause = pause}));
    return pools_.back()->pool;
  }
  static absl::StatusOr<PoolBlock> Take(RegionPool& pool, std::size_t bytes) {
    return pool.Take(bytes, absl::Now() + absl::Seconds(30));
  }
  static absl::StatusOr<Array> Empty(RegionPool& pool, std::size_t bytes) {
    return pool.Empty(DType::kU8, {static_cast<std::int64_t>(bytes)}, absl::Now() + absl::Seconds(30));
  }
  std::vector<PoolBlock> TakeMany(RegionPool& pool, int count, std::size_t bytes) {
    std::vector<PoolBlock> blocks;
    for (int i = 0; i < count; ++i) {
      absl::StatusOr<PoolBlock> block = Take(pool, bytes);
      EXPECT_THAT(block, IsOk());
      if (block.ok()) blocks.push_back(*std::move(block));
    }
    return blocks;
  }

  const std::string path_;
  std::optional<FakeRegions> server_;
  std::vector<std::unique_ptr<Pool>> pools_;
};

TEST_F(RegionPoolTest, OpensNothingBeforeItIsNeeded) {
  RegionPool& pool = Make();
  EXPECT_THAT(server_->sizes(), IsEmpty());
  const auto block = Take(pool, 1000);
  ASSERT_THAT(block, IsOk());
  EXPECT_EQ(block->bytes, 1024u);
  EXPECT_THAT(server_->sizes(), ElementsAre(kMiB));
}

TEST_F(RegionPoolTest, UsesMemoryAgain) {
  RegionPool& pool = Make();
  const void* first = nullptr;
  for (int i = 0; i < 10; ++i) {
    const auto block = Take(pool, 300000);
    ASSERT_THAT(block, IsOk());
    if (first == nullptr) first = block->memory.get();
    EXPECT_EQ(block->memory.get(), first);
  }
  EXPECT_EQ(server_->opened(), 1);
}

TEST_F(RegionPoolTest, GrowsAsItIsNeeded) {
  RegionPool& pool = Make();
  const auto blocks = TakeMany(pool, 12, kMiB);
  EXPECT_THAT(server_->sizes(), ElementsAre(kMiB, kMiB, 2 * kMiB, 4 * kMiB, 4 * kMiB));
  const auto large = Take(pool, 9 * kMiB + 1);
  ASSERT_THAT(large, IsOk());
  EXPECT_EQ(server_->sizes().back(), 10 * kSignedMiB);
}

TEST_F(RegionPoolTest, TakesTheSmallestGapOfAllRegions) {
  RegionPool& pool = Make();
  auto blocks = TakeMany(pool, 2, kMiB);
  const void* const second = blocks[1].memory.get();
  const auto part = [&] { return Take(pool, kMiB / 2); };
  blocks[1] = {};
  const auto small = part();
  blocks[0] = {};
  const auto other = part();
  ASSERT_THAT(small, IsOk());
  ASSERT_THAT(other, IsOk());
  const auto within = [&](const PoolBlock& block) {
    return static_cast<const char*>(block.memory.get()) - static_cast<const char*>(second);
  };
  EXPECT_EQ(within(*small), 0);
  EXPECT_EQ(within(*other), kSignedMiB / 2);
}

TEST_F(RegionPoolTest, HasALimit) {
  RegionPool& pool = Make(5 * kMiB);
  auto blocks = TakeMany(pool, 5, kMiB);
  EXPECT_EQ(server_->bytes(), 5 * kSignedMiB);
  EXPECT_THAT(Take(pool, 1).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("of 5242880 bytes (pool_bytes, or the server's limit) 0 are left")));
  const void* const first = blocks[0].memory.get();
  blocks[0] = {};
  const auto again = Take(pool, kMiB);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->memory.get(), first);
  EXPECT_THAT(Take(pool, 6 * kMiB).status(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(Take(pool, ~std::size_t{0}).status(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(pool.TakeWarning(), "") << "the limit is the client's own";
}

TEST_F(RegionPoolTest, ObeysTheServersLimit) {
  server_->max_region_bytes = server_->quota = 3 * kSignedMiB / 2;
  RegionPool& pool = Make();
  const auto blocks = TakeMany(pool, 3, kMiB / 2);
  EXPECT_THAT(server_->sizes(), ElementsAre(kMiB, kMiB / 2));
  EXPECT_THAT(Take(pool, 1).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("pool_bytes")));
  EXPECT_THAT(pool.TakeWarning(), HasSubstr("elements travel in messages: 256 bytes of shared memory"));
  EXPECT_EQ(pool.TakeWarning(), "");
  EXPECT_EQ(server_->info_calls(), 1);
}

TEST_F(RegionPoolTest, OpensSmallerRegionsWhereTheServerHasLess) {
  server_->quota = kSignedMiB / 2 - 4096;
  RegionPool& pool = Make();
  const auto small = Take(pool, 1000), rest = Take(pool, kMiB / 4 - 4096);
  ASSERT_THAT(small, IsOk());
  ASSERT_THAT(rest, IsOk());
  // The server is asked for half, and half again, until it agrees.
  EXPECT_THAT(server_->sizes(), ElementsAre(kMiB / 4));
  const auto more = Take(pool, kMiB / 8);
  ASSERT_THAT(more, IsOk());
  EXPECT_THAT(server_->sizes(), ElementsAre(kMiB / 4, kMiB / 8));
  EXPECT_THAT(Take(pool, kMiB / 2).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("524288 bytes are not to be had")));
}

TEST_F(RegionPoolTest, RemembersRefusalsOfSuchSizes) {
  server_->quota = kSignedMiB / 4;
  RegionPool& pool = Make(64 * kMiB, absl::Hours(1));
  EXPECT_THAT(Take(pool, kMiB / 2).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("524288 bytes are not")));
  const int asked = server_->asked();
  EXPECT_THAT(Take(pool, kMiB / 2 + 1).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("a moment ago: 524288 bytes")));
  EXPECT_EQ(server_->asked(), asked);
  EXPECT_THAT(Take(pool, 1000), IsOk());
  EXPECT_THAT(server_->sizes(), ElementsAre(kMiB / 4));
}

TEST_F(RegionPoolTest, DoesNotAskAServerWithoutMemoryAgainAtOnce) {
  server_->max_region_bytes = 0;
  RegionPool& pool = Make(64 * kMiB, absl::Hours(1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Take(pool, 1).status(),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("shares no memory")));
  }
  EXPECT_EQ(server_->info_calls(), 1);
  EXPECT_EQ(pool.TakeWarning(), "") << "nobody asked for shared memory";
  server_->max_region_bytes = kSignedMiB;
  EXPECT_THAT(Take(Make(), 1), IsOk());
}

TEST_F(RegionPoolTest, WarnsOfASocketThatIsOfNoUse) {
  const std::string nowhere = path_ + ".nowhere";
  RegionPool& named = Make(kMiB, absl::ZeroDuration(), SharedMemory::kAuto, nowhere);
  EXPECT_THAT(Take(named, 1).status(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(nowhere)));
  EXPECT_THAT(named.TakeWarning(), AllOf(HasSubstr("the region socket \"" + nowhere + "\" is of no use"),
                                         HasSubstr("elements travel in messages")));
  EXPECT_THAT(Take(named, 1).status(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(named.TakeWarning(), "") << "once";
  RegionPool& always = Make(kMiB, absl::ZeroDuration(), SharedMemory::kAlways, nowhere);
  EXPECT_THAT(Take(always, 1).status(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(always.TakeWarning(), "") << "it is an error";
}

TEST_F(RegionPoolTest, LendsNoMoreThanAQuarter) {
  RegionPool& pool = Make(4 * kMiB);
  const auto blocks = TakeMany(pool, 2, kMiB / 2);
  std::vector<std::shared_ptr<void>> kept = {pool.Lend(blocks[0]), pool.Lend(blocks[1])};
  EXPECT_NE(kept[0], nullptr);
  EXPECT_NE(kept[1], nullptr);
  const auto more = Take(pool, 256);
  ASSERT_THAT(more, IsOk());
  EXPECT_EQ(pool.Lend(*more), nullptr);
  std::vector<Array> extra;
  for (int i = 0; i < 6; ++i) extra.push_back(*Empty(pool, kMiB));
  EXPECT_EQ(pool.Lend(*more), nullptr);
  kept[0].reset();
  EXPECT_NE(pool.Lend(*more), nullptr);
}

TEST_F(RegionPoolTest, LendsLessWhereTheServerHasLess) {
  server_->quota = kSignedMiB / 2;
  RegionPool& pool = Make();
  const auto block = Take(pool, kMiB / 4), small = Take(pool, kMiB / 8);
  ASSERT_THAT(block, IsOk());
  ASSERT_THAT(small, IsOk());
  EXPECT_EQ(pool.Lend(*block), nullptr);
  EXPECT_NE(pool.Lend(*small), nullptr);
}

TEST_F(RegionPoolTest, EmptyComesOnTop) {
  RegionPool& pool = Make(2 * kMiB);
  std::vector<Array> arrays;
  for (int i = 0; i < 4; ++i) arrays.push_back(*Empty(pool, kMiB));
  auto blocks = TakeMany(pool, 2, kMiB);
  EXPECT_THAT(Take(pool, kMiB).status(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(server_->bytes(), 6 * kSignedMiB);
  // Unused regions are closed while there are more than there should be.
  blocks.clear();
  arrays.clear();
  EXPECT_THAT(Take(pool, kMiB), IsOk());
  AwaitThat("fewer regions", [&] { return server_->bytes() <= 2 * kSignedMiB; });
}

TEST_F(RegionPoolTest, EmptyIsOrdinaryMemoryWhereThereIsNoRoom) {
  server_->quota = kSignedMiB;
  RegionPool& pool = Make();
  const auto array = Empty(pool, 2 * kMiB);
  ASSERT_THAT(array, IsOk());
  std::memset(array->data(), 1, array->bytes());
  EXPECT_EQ(pool.table().Find(array->data(), array->bytes()), nullptr);
  EXPECT_THAT(pool.Empty(DType::kU8, {0, 5}, absl::InfiniteFuture()), IsOk());
  EXPECT_THAT(pool.Empty(DType::kU8, {-1}, absl::InfiniteFuture()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  RegionPool& always = Make(kMiB, absl::ZeroDuration(), SharedMemory::kAlways);
  EXPECT_THAT(Empty(always, 2 * kMiB).status(), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(RegionPoolTest, EmptyIsOrdinaryMemoryAfterTheDeadlineOfAnotherCall) {
  server_->handover_error.emplace();
  server_->handover_error->set_code(grpc::StatusCode::DEADLINE_EXCEEDED);
  server_->handover_error->set_message("too late");
  RegionPool& pool = Make(64 * kMiB, absl::Hours(1));
  EXPECT_THAT(Take(pool, 1000).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("too late")));
  server_->handover_error.reset();
  EXPECT_THAT(Empty(pool, 1000), IsOk());
  EXPECT_THAT(Take(pool, 1000).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("a moment ago: too late")));
}

TEST_F(RegionPoolTest, DropsLostRegions) {
  RegionPool& pool = Make(4 * kMiB);
  const auto blocks = TakeMany(pool, 2, kMiB);
  std::shared_ptr<void> kept = pool.Lend(blocks[0]);
  const Array extra = *Empty(pool, kMiB);
  std::memset(kept.get(), 5, kMiB);
  server_->CloseRegions();
  AwaitThat("the end of the regions",
            [&] { return !blocks[0].region->status().ok() && !blocks[1].region->status().ok(); });
  const auto fresh = Take(pool, kMiB);
  ASSERT_THAT(fresh, IsOk());
  EXPECT_THAT(fresh->region->status(), IsOk());
  EXPECT_EQ(static_cast<const char*>(kept.get())[kMiB - 1], 5);
  EXPECT_NE(pool.Lend(*fresh), nullptr) << "a quarter is free again";
  EXPECT_EQ(pool.Lend(blocks[1]), blocks[1].memory) << "ordinary memory";
  EXPECT_EQ(server_->info_calls(), 2) << "another server may have another limit";
}

TEST_F(RegionPoolTest, ArraysOutliveThePool) {
  RegionPool& pool = Make();
  std::shared_ptr<void> kept;
  {
    const auto block = Take(pool, 1000);
    ASSERT_THAT(block, IsOk());
    kept = pool.Lend(*block);
  }
  const Array extra = *Empty(pool, 1000);
  pools_.clear();
  server_->AwaitRegions(0);
  std::memset(kept.get(), 1, 1000);
  std::memset(extra.data(), 1, 1000);
}

TEST_F(RegionPoolTest, OpensOneRegionAtATime) {
  RegionPool& pool = Make();
  std::vector<absl::StatusOr<PoolBlock>> blocks(8, absl::UnknownError(""));
  std::vector<std::thread> threads;
  for (auto& block : blocks) threads.emplace_back([&] { block = Take(pool, 1000); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& block : blocks) EXPECT_THAT(block, IsOk());
  EXPECT_THAT(server_->sizes(), ElementsAre(kMiB));
}

TEST_F(RegionPoolTest, ThreadsNeverHaveTheSameMemory) {
  RegionPool& pool = Make(16 * kMiB);
  const auto work = [&](int seed) {
    std::minstd_rand random(static_cast<unsigned>(seed));
    std::vector<std::pair<std::shared_ptr<void>, std::size_t>> kept;
    const auto matches = [&](const auto& each) {
      const auto* const bytes = static_cast<const char*>(each.first.get());
      return std::all_of(bytes, bytes + each.second, [&](char byte) { return byte == seed; });
    };
    for (int i = 0; i < 200; ++i) {
      const std::size_t bytes = random() % 400000 + 1;
      if (random() % 3 == 0) {
        const absl::StatusOr<Array> array = Empty(pool, bytes);
        ASSERT_THAT(array, IsOk());
        kept.emplace_back(std::const_pointer_cast<void>(array->View().owner), bytes);
      } else {
        absl::StatusOr<PoolBlock> block = Take(pool, bytes);
        if (!block.ok()) continue;
        kept.emplace_back(std::move(block->memory), bytes);
      }
      std::memset(kept.back().first.get(), seed, bytes);
      if (kept.size() <= 3) continue;
      const auto gone = kept.begin() + static_cast<std::ptrdiff_t>(random() % kept.size());
      EXPECT_TRUE(matches(*gone));
      kept.erase(gone);
    }
  };
  std::vector<std::thread> threads;
  for (int seed = 1; seed <= 6; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace warpline::client
