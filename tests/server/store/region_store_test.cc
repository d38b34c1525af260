#include "server/store/region_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/base/errors.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

constexpr OwnerId kRegionOwner = 1, kRegionOther = 2;
constexpr std::size_t kPage = 4096;

class RegionStoreTest : public ::testing::Test {
 protected:
  // A region of so many pages, whose memory keeps its share of the limits.
  std::string Made(std::size_t pages = 4, OwnerId owner = kRegionOwner) {
    const auto ticket = store_.Open(CallerWith(owner), pages * kPage);
    EXPECT_THAT(ticket, IsOk());
    auto reservation = store_.Redeem(*ticket);
    EXPECT_THAT(reservation, IsOk());
    EXPECT_EQ(reservation->owner(), owner);
    EXPECT_EQ(reservation->bytes(), pages * kPage);
    struct Memory {
      RegionStore::Reservation reservation;
      std::vector<std::byte> bytes;
    };
    auto memory =
        std::make_shared<Memory>(Memory{*std::move(reservation), std::vector<std::byte>(pages * kPage)});
    memory_ = memory;
    const std::span<std::byte> bytes = memory->bytes;
    return store_.Add(owner, Buffer(bytes, {.kind = Place::Kind::kPinned}, std::move(memory)));
  }
  absl::StatusOr<Buffer> Use(const std::string& id, std::int64_t call = 0) {
    return store_.Use(kRegionOwner, id, 0, kPage, call);
  }
  bool WithdrawnAtOnce(const std::string& id, std::int64_t call) {
    bool ended = false;
    store_.Withdraw(id, call, [&] { ended = true; });
    return ended;
  }
  double Bytes() { return metrics_.region_bytes.Value(); }

  Metrics metrics_;
  // One owner may have three quarters, 60 pages.
  RegionStore store_{{.max_bytes = 80 * kPage,
                      .max_regions = 5,
                      .max_regions_per_owner = 3,
                      .ticket_ttl = absl::Milliseconds(200)},
                     metrics_};
  std::weak_ptr<void> memory_;  // of the region made last
};

TEST_F(RegionStoreTest, ASliceIsWhereItsRegionSays) {
  const std::string id = Made();
  const auto all = store_.Use(kRegionOwner, id, 0, 4 * kPage, 0);
  const auto slice = store_.Use(kRegionOwner, id, 100, kPage, 1);
  ASSERT_THAT(slice, IsOk());
  EXPECT_EQ(slice->bytes().data(), all->bytes().data() + 100);
  EXPECT_EQ(slice->bytes().size(), kPage);
  EXPECT_EQ(slice->place().kind, Place::Kind::kPinned);
  EXPECT_THAT(store_.Use(kRegionOwner, id, 4 * kPage, 0, 0), IsOk());  // nothing, at the end
}

TEST_F(RegionStoreTest, ASliceMustLieInItsRegion) {
  const std::string id = Made();
  const auto refused = [&](std::int64_t offset, std::size_t bytes) {
    return store_.Use(kRegionOwner, id, offset, bytes, 0).status().code() == absl::StatusCode::kOutOfRange;
  };
  EXPECT_TRUE(refused(0, 4 * kPage + 1));
  EXPECT_TRUE(refused(1, 4 * kPage));
  EXPECT_TRUE(refused(4 * kPage + 1, 0));
  EXPECT_TRUE(refused(-1, 1));
  EXPECT_TRUE(refused(8, std::numeric_limits<std::size_t>::max() - 7));  // the sum is 0
  EXPECT_TRUE(refused(std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::size_t>::max()));
  EXPECT_TRUE(refused(std::numeric_limits<std::int64_t>::min(), 0));
}

TEST_F(RegionStoreTest, OnlyItsOwnerHasARegion) {
  const std::string id = Made();
  EXPECT_THAT(store_.Use(kRegionOther, id, 0, 1, 0),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(id.substr(id.size() - 8))));
  EXPECT_THAT(store_.Use(kRegionOther, id, 0, 1, 0),
              StatusIs(absl::StatusCode::kNotFound, ::testing::Not(HasSubstr(id))));
  EXPECT_THAT(Use("nonsense"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("no region")));
  RegionStore another({}, metrics_);
  std::string foreign = id;
  foreign[0] = foreign[0] == '0' ? '1' : '0';
  EXPECT_THAT(Use(foreign), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("made by server")));
}

TEST_F(RegionStoreTest, ATicketIsGoodOnce) {
  const std::string ticket = *store_.Open(CallerWith(kRegionOwner), kPage);
  EXPECT_THAT(store_.Redeem("no ticket"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("ticket")));
  EXPECT_THAT(store_.Redeem(ticket), IsOk());
  EXPECT_THAT(store_.Redeem(ticket), StatusIs(absl::StatusCode::kNotFound, HasSubstr("used")));
  EXPECT_EQ(Bytes(), 0) << "the reservation was dropped";
}

TEST_F(RegionStoreTest, ATicketThatIsNotPresentedGivesItsShareBack) {
  const std::string late = *store_.Open(CallerWith(kRegionOwner), 60 * kPage);
  EXPECT_EQ(Bytes(), 60 * kPage);
  EXPECT_THAT(store_.Open(CallerWith(kRegionOwner), kPage),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("245760")));
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  EXPECT_THAT(store_.Open(CallerWith(kRegionOwner), 60 * kPage), IsOk());
  EXPECT_THAT(store_.Redeem(late), StatusIs(absl::StatusCode::kNotFound, HasSubstr("expired")));
}

TEST_F(RegionStoreTest, SizesThatCanNeverBeHadAreToldFromThoseThatMustWait) {
  const auto refusal = [&](std::size_t bytes) {
    return store_.Open(CallerWith(kRegionOwner), bytes).status();
  };
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, kPage + 1, std::size_t{1} << 63 | 1}) {
    EXPECT_EQ(FieldOf(refusal(bytes)), "size_bytes") << bytes;
  }
  const absl::Status never = refusal(61 * kPage);
  EXPECT_THAT(
      never, StatusIs(absl::StatusCode::kResourceExhausted, AllOf(HasSubstr("249856"), HasSubstr("245760"),
                                                                  HasSubstr("its share of --region-bytes"))));
  EXPECT_EQ(RetryAfterOf(never), std::nullopt);
  EXPECT_EQ(RetryAfterOf(refusal(std::numeric_limits<std::size_t>::max() / kPage * kPage)), std::nullopt);
  const std::string first = Made(40);
  const absl::Status later = refusal(21 * kPage);
  EXPECT_EQ(later.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(RetryAfterOf(later), std::nullopt);
}

TEST_F(RegionStoreTest, OneOwnerDoesNotTakeAllAndAllTogetherHaveALimit) {
  Made(60);
  EXPECT_THAT(store_.Open(CallerWith(kRegionOther), 21 * kPage),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("all 1 regions")));
  EXPECT_THAT(store_.Open(CallerWith(kRegionOther), 16 * kPage),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("bytes of shared regions")));
  EXPECT_THAT(store_.Open(CallerWith(kRegionOther), 15 * kPage), IsOk());
  EXPECT_EQ(metrics_.regions.Value(), 2);
}

TEST_F(RegionStoreTest, RegionsAreBoundedInNumber) {
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(Made(1));
  EXPECT_THAT(store_.Open(CallerWith(kRegionOwner), kPage),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the limits are 3 and ")));
  for (int i = 0; i < 2; ++i) ids.push_back(Made(1, kRegionOther));
  EXPECT_THAT(store_.Open(CallerWith(kRegionOther), kPage),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("of 5 shared regions 5 are in use")));
  for (const std::string& id : ids) store_.Remove(id);
  EXPECT_EQ(store_.size(), 0u);
  EXPECT_EQ(metrics_.regions.Value(), 0);
  EXPECT_EQ(Bytes(), 0);
}

TEST_F(RegionStoreTest, MemoryStaysForAsLongAsAJobUsesIt) {
  const std::string id = Made();
  auto used = Use(id, 1);
  ASSERT_THAT(used, IsOk());
  store_.Remove(id);
  EXPECT_THAT(Use(id), StatusIs(absl::StatusCode::kNotFound, HasSubstr("closed")));
  EXPECT_FALSE(memory_.expired());
  EXPECT_EQ(Bytes(), 4 * kPage);
  used = Buffer();
  EXPECT_TRUE(memory_.expired());
  EXPECT_EQ(Bytes(), 0);
}

TEST_F(RegionStoreTest, AWithdrawnCallEndsWithItsLastUse) {
  const std::string id = Made();
  auto first = Use(id, 7), second = Use(id, 7), other = Use(id, 8);
  int ended = 0;
  for (int i = 0; i < 3; ++i) store_.Withdraw(id, 7, [&] { ++ended; });
  EXPECT_THAT(Use(id, 7), StatusIs(absl::StatusCode::kAborted, HasSubstr("call 7 was withdrawn")));
  first = Buffer();
  EXPECT_EQ(ended, 0);
  second = Buffer();
  EXPECT_EQ(ended, 1);
  EXPECT_THAT(Use(id, 8), IsOk());
}

TEST_F(RegionStoreTest, ACallThatIsOnItsWayIsRefusedOnceItWasWithdrawn) {
  const std::string id = Made();
  EXPECT_TRUE(WithdrawnAtOnce(id, 3));
  EXPECT_THAT(Use(id, 3), StatusIs(absl::StatusCode::kAborted, HasSubstr("3")));
  EXPECT_THAT(Use(id, 2), IsOk());
  EXPECT_THAT(Use(id, 0), IsOk());
  EXPECT_THAT(Use(id, -1), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1")));
}

TEST_F(RegionStoreTest, WithdrawnNumbersAreBoundedAndNoneIsForgotten) {
  const std::string id = Made();
  for (std::int64_t call = 10; call < 10 + 1025; ++call) EXPECT_TRUE(WithdrawnAtOnce(id, call));
  for (std::int64_t call : {1, 10, 11, 1034})
    EXPECT_EQ(Use(id, call).status().code(), absl::StatusCode::kAborted) << call;
  EXPECT_THAT(Use(id, 1035), IsOk());
  EXPECT_TRUE(WithdrawnAtOnce(id, 5)) << "it is below what is remembered, and refused all the same";
  EXPECT_EQ(Use(id, 5).status().code(), absl::StatusCode::kAborted);
}

TEST_F(RegionStoreTest, ARemovedRegionAnswersNoWithdrawal) {
  const std::string id = Made();
  store_.Remove(id);
  EXPECT_FALSE(WithdrawnAtOnce(id, 1));
}

TEST_F(RegionStoreTest, WithdrawalsRaceWithCallsAndEachIsAnsweredOnce) {
  const std::string id = Made();
  constexpr int kCalls = 2000;
  std::atomic<int> ended = 0, using_after_end = 0;
  std::vector<std::atomic<bool>> over(kCalls + 1);
  std::vector<std::thread> users;
  for (int t = 0; t < 3; ++t) {
    users.emplace_back([&] {
      for (int call = 1; call <= kCalls; ++call) {
        const auto used = Use(id, call);
        if (used.ok() && over[static_cast<std::size_t>(call)].load()) ++using_after_end;
      }
    });
  }
  for (int call = 1; call <= kCalls; ++call) {
    store_.Withdraw(id, call, [&, call] {
      over[static_cast<std::size_t>(call)] = true;
      ++ended;
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(ended.load(), kCalls);
  EXPECT_EQ(using_after_end.load(), 0);
}

// Without a limit for each owner.
class RegionShareTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> Open(std::uint64_t share, ClientId client, std::size_t pages) {
    return store_.Open({.owner = kAnonymous, .claimant = {.share = share, .client = client}}, pages * kPage);
  }

  Metrics metrics_;
  RegionStore store_{{.max_bytes = 160 * kPage, .max_regions = 1000, .max_regions_per_owner = 1000},
                     metrics_};
};

TEST_F(RegionShareTest, OneOpenDoesNotTakeAll) {
  EXPECT_EQ(store_.MaxBytesOf(CallerWith(kRegionOwner)), 120 * kPage);
  EXPECT_EQ(store_.MaxBytesOf({.owner = kAnonymous, .claimant = {.share = 1, .client = 1}}), 90 * kPage);
  const absl::Status never = Open(1, 1, 91).status();
  EXPECT_THAT(never, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("can never be had")));
  EXPECT_EQ(RetryAfterOf(never), std::nullopt);
  EXPECT_THAT(Open(1, 1, 90), IsOk());
}

TEST_F(RegionShareTest, RegionsCountUntilTheirMemoryGoes) {
  const auto ticket = Open(1, 1, 90);
  ASSERT_THAT(ticket, IsOk());
  {
    auto reservation = store_.Redeem(*ticket);
    ASSERT_THAT(reservation, IsOk());
    const RegionStore::Reservation moved = *std::move(reservation);
    EXPECT_THAT(Open(1, 1, 1), StatusIs(absl::StatusCode::kResourceExhausted));
  }
  EXPECT_THAT(Open(1, 1, 90), IsOk());
}

TEST_F(RegionShareTest, ATicketThatExpiresAndARefusalGiveTheirBytesBack) {
  RegionStore store({.max_bytes = 160 * kPage,
                     .max_regions = 1,
                     .max_regions_per_owner = 100,
                     .ticket_ttl = absl::Milliseconds(50)},
                    metrics_);
  const Caller caller{.owner = kAnonymous, .claimant = {.share = 1, .client = 1}},
      other{.owner = kAnonymous, .claimant = {.share = 2, .client = 2}};
  ASSERT_THAT(store.Open(caller, 90 * kPage), IsOk());
  // The bytes would do; there is no second region.
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(store.Open(other, 20 * kPage),
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("of 1 shared regions")));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_THAT(store.Open(other, 90 * kPage), IsOk());
}

TEST_F(RegionShareTest, ARefusalNamesTheShareAndNotAFlagThatIsNotSet) {
  ASSERT_THAT(Open(1, 1, 60), IsOk());
  const std::string said(Open(1, 1, 80).status().message());
  EXPECT_THAT(said, HasSubstr("which may have 368640 at present"));
  EXPECT_THAT(said, ::testing::Not(HasSubstr("per-owner")));
}

TEST_F(RegionShareTest, PeersAndTheirClientsFindRoomBesideOneThatTakesAllItCan) {
  while (Open(1, 1, 1).ok()) {
  }
  EXPECT_THAT(Open(1, 2, 20), IsOk()) << "another client of this peer";
  EXPECT_THAT(Open(2, 3, 20), IsOk()) << "another peer";
  const absl::Status full = Open(1, 1, 1).status();
  EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("bytes of shared regions")));
  EXPECT_NE(RetryAfterOf(full), std::nullopt);
}

TEST(RegionQuotaTest, WhatIsUsedOfAQuotaIsShown) {
  Metrics metrics;
  OwnerMetrics owners(
      1, [](OwnerId) { return "token:alice"; }, metrics);
  RegionStore store({.max_bytes = 100 * kPage,
                     .max_regions = 100,
                     .max_regions_per_owner = 100,
                     .limits_of = [](OwnerId) { return OwnerLimits{.region_bytes = 4 * kPage}; },
                     .owner_metrics = &owners},
                    metrics);
  const auto region = store.Open(CallerWith(kRegionOwner), 3 * kPage);
  ASSERT_THAT(region, IsOk());
  EXPECT_DOUBLE_EQ(owners.Of(kRegionOwner).region_quota_ratio.Value(), 0.75);
  // Owners without series of their own share one, of which a ratio would say nothing.
  ASSERT_THAT(store.Open(CallerWith(kRegionOther), 2 * kPage), IsOk());
  EXPECT_EQ(owners.Of(kRegionOther).label, OwnerMetrics::kOthers);
  EXPECT_EQ(owners.Of(kRegionOther).region_quota_ratio.Value(), 0);
}

TEST(RegionQuotaTest, AnOwnerGetsNoMoreThanItsQuota) {
  Metrics metrics;
  RegionStore store({.max_bytes = 100 * kPage,
                     .max_regions = 100,
                     .max_regions_per_owner = 100,
                     .limits_of =
                         [](OwnerId owner) {
                           return owner == kRegionOwner ? OwnerLimits{.region_bytes = 3 * kPage}
                                                        : OwnerLimits();
                         }},
                    metrics);
  ASSERT_THAT(store.Open(CallerWith(kRegionOwner), 2 * kPage), IsOk());
  const absl::Status full = store.Open(CallerWith(kRegionOwner), 2 * kPage).status();
  EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("quota")));
  EXPECT_TRUE(RetryAfterOf(full).has_value());
  EXPECT_FALSE(RetryAfterOf(store.Open(CallerWith(kRegionOwner), 4 * kPage).status()).has_value())
      << "waiting does not help";
  EXPECT_THAT(store.Open(CallerWith(kRegionOther), 50 * kPage), IsOk());
}

}  // namespace
}  // namespace warpline
