#include "server/store/tensor_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "server/base/errors.h"
#include "tests/testing/patience.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

constexpr OwnerId kOwner = 1, kOther = 2;

class TensorStoreTest : public ::testing::Test {
 protected:
  static TensorSpec Bytes(std::int64_t count) {
    return {DType::kU8, {count}, static_cast<std::size_t>(count)};
  }
  TensorStore::Info Made(std::int64_t bytes, absl::Duration ttl = absl::Hours(1), OwnerId owner = kOwner) {
    auto memory = store_.Allocate(CallerWith(kAnonymous), 0, static_cast<std::size_t>(bytes));
    EXPECT_THAT(memory, IsOk());
    return store_.Add(owner, Bytes(bytes), ttl, *std::move(memory));
  }
  // A writer of [begin, end).
  TensorStore::Writing Writer(const std::string& id, std::size_t begin, std::size_t end) {
    auto writing = store_.Write(kOwner, id, begin);
    EXPECT_THAT(writing, IsOk());
    EXPECT_THAT(writing->Extend(end - begin), IsOk());
    return *std::move(writing);
  }

  Metrics metrics_;
  std::atomic<int> live_blocks_ = 0;
  TensorStore store_{{.max_ttl = absl::Hours(24), .max_tensors = 10, .device_bytes = {4096, 8192}},
                     [this](int device, std::size_t bytes) -> absl::StatusOr<Buffer> {
                       ++live_blocks_;
                       auto* block = new std::vector<std::byte>(bytes);
                       return Buffer(*block, {.kind = Place::Kind::kHost, .device = device},
                                     std::shared_ptr<void>(block, [this](void* gone) {
                                       --live_blocks_;
                                       delete static_cast<std::vector<std::byte>*>(gone);
                                     }));
                     },
                     metrics_};
};

TEST_F(TensorStoreTest, ATensorIsReadByItsOwnerUntilItIsDropped) {
  const TensorStore::Info made = Made(100);
  {
    const auto reading = store_.Read(kOwner, made.id);
    ASSERT_THAT(reading, IsOk());
    EXPECT_EQ(reading->info.spec.bytes, 100u);
    EXPECT_EQ(reading->memory.bytes().size(), 100u);
  }
  EXPECT_THAT(store_.Read(kOther, made.id), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_.Drop(kOther, made.id), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_.Drop(kOwner, made.id), IsOk());
  EXPECT_THAT(store_.Read(kOwner, made.id), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_.Drop(kOwner, made.id), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(live_blocks_, 0);
  EXPECT_EQ(metrics_.resident_tensors.Value(), 0);
  EXPECT_EQ(metrics_.ResidentBytes(0).Value(), 0);
}

TEST_F(TensorStoreTest, WhoReadsADroppedTensorKeepsItsMemory) {
  const TensorStore::Info made = Made(100);
  auto reading = store_.Read(kOwner, made.id);
  ASSERT_THAT(reading, IsOk());
  EXPECT_THAT(store_.Drop(kOwner, made.id), IsOk());
  EXPECT_EQ(live_blocks_, 1);
  EXPECT_EQ(metrics_.ResidentBytes(0).Value(), 256);
  reading->memory = Buffer();
  EXPECT_EQ(live_blocks_, 0);
  EXPECT_EQ(metrics_.ResidentBytes(0).Value(), 0);
}

TEST_F(TensorStoreTest, ALeaseEndsWithoutAUseAndNotDuringOne) {
  const TensorStore::Info made = Made(100, absl::Milliseconds(20));
  auto reading = store_.Read(kOwner, made.id);
  ASSERT_THAT(reading, IsOk());
  absl::SleepFor(absl::Milliseconds(60));
  EXPECT_THAT(store_.Read(kOwner, made.id), IsOk());
  reading->memory = Buffer();
  // Each look at it renews the lease, so none is taken for longer than the lease.
  absl::SleepFor(absl::Milliseconds(30));
  EXPECT_THAT(store_.Read(kOwner, made.id),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("lease has ended")));
  AwaitThat("the end of the blocks", [&] { return live_blocks_ == 0; });
  EXPECT_EQ(metrics_.leases_expired.Value(), 1);
}

TEST_F(TensorStoreTest, RenewingLengthensAndShortensALease) {
  const TensorStore::Info made = Made(100, absl::Milliseconds(50));
  const auto longer = store_.Renew(kOwner, made.id, absl::Hours(2));
  ASSERT_THAT(longer, IsOk());
  EXPECT_GT(longer->ttl, absl::Hours(1));
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_THAT(store_.Read(kOwner, made.id), IsOk());
  ASSERT_THAT(store_.Renew(kOwner, made.id, absl::Milliseconds(5)), IsOk());
  AwaitThat("the end of the tensors", [&] { return store_.size() == 0; });
  EXPECT_THAT(store_.Renew(kOwner, made.id, std::nullopt), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(TensorStoreTest, MemoryIsBoundedAndTheFiguresAreGiven) {
  const TensorStore::Info made = Made(3000);  // counts as 3072
  EXPECT_THAT(
      store_.Allocate(CallerWith(kAnonymous), 0, 1025),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1025 bytes does not fit: those on device "
                                                               "0 take 3072 of 4096 bytes")));
  EXPECT_THAT(store_.Allocate(CallerWith(kAnonymous), 0, 1024), IsOk());
  EXPECT_THAT(store_.Allocate(CallerWith(kAnonymous), 1, 8192), IsOk());
  EXPECT_THAT(store_.Allocate(CallerWith(kAnonymous), 0, static_cast<std::size_t>(-1)),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(metrics_.ResidentBytes(0).Value(), 3072) << "what was refused, or given back, does not count";
}

TEST_F(TensorStoreTest, TensorsOfAClientLieTogetherWhileThereIsRoom) {
  const Caller first = CallerWith(kOwner, 1), second = CallerWith(kOwner, 2);
  const int home = store_.DeviceFor(first, 1024);
  EXPECT_EQ(home, 1) << "a new client goes where most room is";
  const auto kept = store_.Allocate(first, 0, 1024);
  EXPECT_EQ(store_.DeviceFor(first, 1024), 0) << "where it has some already";
  EXPECT_EQ(store_.DeviceFor(second, 1024), 1) << "though it is of the same owner";
  EXPECT_EQ(store_.DeviceFor(first, 4096), 1) << "there is no room for it beside the others";
}

TEST_F(TensorStoreTest, ResultsLieWhereMostOfTheOperandsDo) {
  const Caller caller = CallerWith(kOwner, 1);
  const auto kept = store_.Allocate(caller, 0, 512);
  EXPECT_EQ(store_.DeviceFor(caller, 100, std::vector<std::size_t>{10, 20}), 1);
  EXPECT_EQ(store_.DeviceFor(caller, 100, std::vector<std::size_t>{20, 10}), 0);
  EXPECT_EQ(store_.DeviceFor(caller, 100, std::vector<std::size_t>{20, 20}), 0) << "as its own";
  EXPECT_EQ(store_.DeviceFor(caller, 4096, std::vector<std::size_t>{20, 20}), 1) << "no room on the other";
  EXPECT_EQ(store_.DeviceFor(caller, 4096, std::vector<std::size_t>{20, 10}), 0)
      << "the result waits for room, and the operands do not move";
}

TEST(TensorStoreWithoutMemoryTest, SaysThatItKeepsNone) {
  Metrics metrics;
  TensorStore store(
      {.device_bytes = {0}}, [](int, std::size_t) { return Buffer(); }, metrics);
  EXPECT_THAT(store.Allocate(CallerWith(kAnonymous), 0, 1),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("1 bytes does not fit: the server keeps none on device 0")));
  EXPECT_THAT(store.Allocate(CallerWith(kAnonymous), 0, 0), IsOk());
}

TEST_F(TensorStoreTest, TensorsAreBoundedInNumberAndShared) {
  std::vector<Buffer> held;
  const auto fill = [&](OwnerId owner) {
    for (auto memory = store_.Allocate(CallerWith(owner), 0, 0); memory.ok();
         memory = store_.Allocate(CallerWith(owner), 0, 0)) {
      held.push_back(*std::move(memory));
    }
  };
  fill(kOwner);
  EXPECT_EQ(held.size(), 8u) << "of ten, three quarters";
  EXPECT_THAT(
      store_.Allocate(CallerWith(kOwner), 0, 0),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("of 10 resident tensors 8 are in use")));
  EXPECT_THAT(store_.Allocate(CallerWith(kOther), 0, 0), IsOk());
  held.pop_back();
  EXPECT_THAT(store_.Allocate(CallerWith(kOwner), 0, 0), IsOk());
}

TEST_F(TensorStoreTest, ATensorIsReadableOnceAllItsBytesAreThere) {
  const auto created = store_.Create(CallerWith(kOwner), Bytes(100), absl::Hours(1), 0);
  ASSERT_THAT(created, IsOk());
  EXPECT_EQ(created->missing_bytes, 100u);
  EXPECT_EQ(Writer(created->id, 60, 100).Commit(), 60u);
  EXPECT_EQ(Writer(created->id, 0, 10).Commit(), 50u);
  EXPECT_THAT(store_.Read(kOwner, created->id),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("of 100 bytes 50 are missing, the first of them bytes 10 to 59")));
  EXPECT_EQ(Writer(created->id, 10, 60).Commit(), 0u);
  EXPECT_THAT(store_.Read(kOwner, created->id), IsOk());
}

TEST_F(TensorStoreTest, ATensorWithoutBytesIsReadableAtOnce) {
  const auto created = store_.Create(CallerWith(kOwner), Bytes(0), absl::Hours(1), 0);
  ASSERT_THAT(created, IsOk());
  EXPECT_THAT(store_.Read(kOwner, created->id), IsOk());
}

TEST_F(TensorStoreTest, WhatWasNotCommittedMayBeWrittenAgain) {
  const auto created = store_.Create(CallerWith(kOwner), Bytes(100), absl::Hours(1), 0);
  { const TensorStore::Writing abandoned = Writer(created->id, 0, 100); }
  EXPECT_THAT(store_.Read(kOwner, created->id), Not(IsOk()));
  TensorStore::Writing again = Writer(created->id, 0, 100);
  TensorStore::Writing moved = std::move(again);  // the range goes with it
  auto late = store_.Write(kOwner, created->id, 50);
  ASSERT_THAT(late, IsOk());
  EXPECT_THAT(late->Extend(10), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(moved.Commit(), 0u);
}

TEST_F(TensorStoreTest, RangesDoNotOverlapAndDoNotLeaveTheTensor) {
  const auto created = store_.Create(CallerWith(kOwner), Bytes(100), absl::Hours(1), 0);
  Writer(created->id, 20, 40).Commit();
  const TensorStore::Writing open = Writer(created->id, 60, 70);
  auto writing = store_.Write(kOwner, created->id, 0);
  ASSERT_THAT(writing, IsOk());
  EXPECT_THAT(writing->Extend(21), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bytes 20 to 20")));
  EXPECT_THAT(writing->Extend(20), IsOk());
  EXPECT_THAT(writing->Extend(1), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("there already")));
  auto behind = store_.Write(kOwner, created->id, 40);
  ASSERT_THAT(behind, IsOk());
  EXPECT_THAT(behind->Extend(20), IsOk());
  const absl::Status met = behind->Extend(1);
  EXPECT_THAT(met, StatusIs(absl::StatusCode::kAborted, HasSubstr("bytes 60 to 60")));
  EXPECT_TRUE(RetryAfterOf(met).has_value());
  auto end = store_.Write(kOwner, created->id, 90);
  ASSERT_THAT(end, IsOk());
  EXPECT_THAT(end->Extend(11), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bytes 90 to 100")));
  EXPECT_THAT(end->Extend(static_cast<std::size_t>(-1)), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store_.Write(kOwner, created->id, 101), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store_.Write(kOwner, created->id, 100), IsOk());
}

TEST_F(TensorStoreTest, NoBytesAreNobodyElses) {
  const auto created = store_.Create(CallerWith(kOwner), Bytes(100), absl::Hours(1), 0);
  const TensorStore::Writing open = Writer(created->id, 60, 70);
  auto within = store_.Write(kOwner, created->id, 65);
  ASSERT_THAT(within, IsOk());
  EXPECT_THAT(within->Extend(0), IsOk());
  EXPECT_THAT(within->Extend(1), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(TensorStoreTest, ACompleteTensorNeverChanges) {
  const TensorStore::Info made = Made(100);
  auto writing = store_.Write(kOwner, made.id, 0);
  ASSERT_THAT(writing, IsOk());
  EXPECT_THAT(writing->Extend(1), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is complete")));
}

TEST_F(TensorStoreTest, AnUnfinishedTensorGoesWithItsLeaseButNotUnderAWriter) {
  const auto created = store_.Create(CallerWith(kOwner), Bytes(100), absl::Milliseconds(20), 0);
  ASSERT_THAT(created, IsOk());
  {
    TensorStore::Writing writing = Writer(created->id, 0, 50);
    absl::SleepFor(absl::Milliseconds(60));
    EXPECT_EQ(store_.size(), 1u);
    EXPECT_EQ(writing.Commit(), 50u);
  }
  AwaitThat("the end of the tensors", [&] { return store_.size() == 0; });
  EXPECT_THAT(store_.Write(kOwner, created->id, 50), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(TensorStoreTest, DropsAllOfManyThatThereAre) {
  const std::vector<std::string> ids = {Made(1).id, "no id", Made(1).id, Made(1, absl::Hours(1), kOther).id};
  EXPECT_EQ(store_.DropEach(kOwner, ids).size(), 2u);
  EXPECT_EQ(store_.size(), 1u);
  EXPECT_EQ(live_blocks_, 1);
  EXPECT_EQ(store_.DropEach(kOwner, ids).size(), 0u);
}

TEST(ManyTensorsTest, AreRenewedAndDroppedInParts) {
  Metrics metrics;
  TensorStore store(
      {.device_bytes = {std::size_t{1} << 20}},
      [](int, std::size_t) { return Buffer({}, {.kind = Place::Kind::kHost}, nullptr); }, metrics);
  const auto create = [&](OwnerId owner, absl::Duration ttl) {
    return store.Create(CallerWith(owner), {DType::kU8, {1}, 1}, ttl, 0)->id;
  };
  constexpr std::size_t kTensors = 100;
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < kTensors; ++i) ids.push_back(create(kOwner, absl::Seconds(1)));
  create(kOwner, absl::Milliseconds(1));
  ids.push_back("no id");
  ids.push_back(create(kOther, absl::Hours(1)));
  std::vector<absl::Duration> lengths = store.RenewEach(kOwner, ids, absl::Hours(2));
  ASSERT_EQ(lengths.size(), kTensors + 2);
  EXPECT_EQ(lengths[kTensors], absl::ZeroDuration());
  EXPECT_EQ(lengths[kTensors + 1], absl::ZeroDuration());
  lengths.resize(kTensors);
  EXPECT_THAT(lengths, Each(absl::Hours(2)));
  // Without a length each keeps its own.
  EXPECT_EQ(store.RenewEach(kOther, ids, std::nullopt).back(), absl::Hours(1));
  AwaitThat("the end of the other lease", [&] { return store.size() == kTensors + 1; });
  EXPECT_EQ(store.DropEach(kOwner, std::span(ids).first(kTensors / 2)).size(), kTensors / 2);
  store.RenewEach(kOwner, ids, absl::Milliseconds(1));
  AwaitThat("the end of the leases", [&] { return store.size() == 1; });
  EXPECT_EQ(metrics.leases_expired.Value(), kTensors / 2 + 1);
}

TEST_F(TensorStoreTest, ListShowsOnesOwnPageByPage) {
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(Made(1).id);
  const TensorStore::Info others = Made(1, absl::Hours(1), kOther);
  std::sort(ids.begin(), ids.end());
  std::vector<std::string> listed;
  for (std::string after;;) {
    const std::vector<TensorStore::Info> page = store_.List(kOwner, after, 2);
    for (const TensorStore::Info& info : page) listed.push_back(info.id);
    if (page.size() < 2) break;
    after = page.back().id;
  }
  EXPECT_EQ(listed, ids);
  ASSERT_EQ(store_.List(kOther, "", 10).size(), 1u);
  EXPECT_EQ(store_.List(kOther, "", 10)[0].id, others.id);
}

TEST_F(TensorStoreTest, LeasesHaveLimits) {
  EXPECT_EQ(*store_.Ttl(0), absl::Minutes(10));
  EXPECT_EQ(*store_.Ttl(1.5), absl::Seconds(1.5));
  EXPECT_EQ(*store_.Ttl(86400), absl::Hours(24));
  for (double seconds : {-1.0, 86401.0, std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    EXPECT_THAT(store_.Ttl(seconds),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("outside (0, 86400] seconds")));
  }
}

// For TSan: everything at once.
TEST_F(TensorStoreTest, ManyThreadsUseAndDropTheSameTensors) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 200; ++i) {
        const auto created =
            store_.Create(CallerWith(kOwner), Bytes(64), absl::Milliseconds(1 + i % 3), t % 2);
        if (!created.ok()) continue;
        auto writing = store_.Write(kOwner, created->id, 0);
        if (writing.ok() && writing->Extend(64).ok()) {
          std::memset(writing->memory().bytes().data(), i, 64);
          writing->Commit();
        }
        const auto reading = store_.Read(kOwner, created->id);
        if (reading.ok()) {
          EXPECT_EQ(reading->memory.bytes().back(), static_cast<std::byte>(i));
        }
        for (const auto& info : store_.List(kOwner, "", 3)) {
          if (info.device == t % 2) static_cast<void>(store_.Drop(kOwner, info.id));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  AwaitThat("the end of the tensors", [&] { return store_.size() == 0; });
  AwaitThat("a count of 0", [&] { return metrics_.resident_tensors.Value() == 0; });
  EXPECT_EQ(metrics_.ResidentBytes(0).Value() + metrics_.ResidentBytes(1).Value(), 0);
}

TEST(TensorQuotaTest, WhatIsUsedOfAQuotaIsShownOfTheFullestDevice) {
  Metrics metrics;
  OwnerMetrics owners(
      2, [](OwnerId owner) { return owner == kOwner ? "token:alice" : "token:bob"; }, metrics);
  TensorStore store(
      {.device_bytes = {8192, 8192},
       .limits_of =
           [](OwnerId owner) {
             return owner == kOwner ? OwnerLimits{.resident_bytes = 2048} : OwnerLimits();
           },
       .owner_metrics = &owners},
      [](int device, std::size_t) -> absl::StatusOr<Buffer> {
        return Buffer({}, {.kind = Place::Kind::kHost, .device = device}, std::make_shared<int>());
      },
      metrics);
  auto first = store.Allocate(CallerWith(kOwner), 0, 1536);
  const auto second = store.Allocate(CallerWith(kOwner), 1, 512);
  EXPECT_DOUBLE_EQ(owners.Of(kOwner).resident_quota_ratio.Value(), 0.75);
  first = Buffer();
  EXPECT_DOUBLE_EQ(owners.Of(kOwner).resident_quota_ratio.Value(), 0.25);
  const auto without = store.Allocate(CallerWith(kOther), 0, 4096);
  EXPECT_EQ(owners.Of(kOther).resident_quota_ratio.Value(), 0);
  EXPECT_THAT(
      metrics.Scrape(),
      HasSubstr("warpline_owner_quota_used_ratio{owner=\"token:alice\",quota=\"resident-bytes\"} 0.25\n"));
}

TEST(TensorQuotaTest, AnOwnerGetsNoMoreThanItsQuotaOnEachDevice) {
  Metrics metrics;
  std::size_t quota = 2048;
  TensorStore store(
      {.device_bytes = {8192, 8192},
       .limits_of =
           [&quota](OwnerId owner) {
             return owner == kOwner ? OwnerLimits{.resident_bytes = quota} : OwnerLimits();
           }},
      [](int device, std::size_t) -> absl::StatusOr<Buffer> {
        return Buffer({}, {.kind = Place::Kind::kHost, .device = device}, std::make_shared<int>());
      },
      metrics);
  auto first = store.Allocate(CallerWith(kOwner), 0, 1024);
  ASSERT_THAT(first, IsOk());
  const absl::Status full = store.Allocate(CallerWith(kOwner), 0, 2048).status();
  EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("its quota is 2048")));
  EXPECT_TRUE(RetryAfterOf(full).has_value());
  const absl::Status never = store.Allocate(CallerWith(kOwner), 0, 4096).status();
  EXPECT_THAT(never, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("its quota is 2048")));
  EXPECT_FALSE(RetryAfterOf(never).has_value());
  EXPECT_THAT(store.Allocate(CallerWith(kOwner), 1, 2048), IsOk());
  EXPECT_THAT(store.Allocate(CallerWith(kOther), 0, 4096), IsOk());
  first = Buffer();  // it counts no more
  EXPECT_THAT(store.Allocate(CallerWith(kOwner), 0, 2048), IsOk());
  const auto second = store.Allocate(CallerWith(kOwner), 0, 2048);
  quota = 1024;  // less than what there is
  EXPECT_THAT(store.Allocate(CallerWith(kOwner), 0, 1),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("2048")));
}

}  // namespace
}  // namespace warpline
