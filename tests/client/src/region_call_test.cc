// Tests for memory in a region when calls fail.
#include "client/src/region_call.h"

#include <gmock/gmock.h>
#include <grpc/grpc.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/client/src/fake_regions.h"
#include "tests/testing/call_async.h"
#include "tests/testing/status_matchers.h"
#include "warpline/client.h"

namespace warpline::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

constexpr absl::Duration kTimeout = absl::Seconds(30);
constexpr std::size_t kCallBytes = 64 << 10;

class RegionCallTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { grpc_init(); }

  explicit RegionCallTest(int max_retries = 0)
      : path_("/tmp/warpline_region_call_test." + std::to_string(::getpid())) {
    server_.emplace(path_);
    client_.emplace("unix:" + path_, ClientOptions{.max_retries = max_retries});
    auto region = client_->OpenRegion(kCallBytes, kTimeout);
    EXPECT_THAT(region, IsOk());
    region_.emplace(*std::move(region));
    x_ = *region_->Allocate(DType::kI32, {1024});
    std::memset(x_.data(), 0, x_.bytes());
  }

  TransposeArgs Request(const std::string& variant) const { return {.x = x_.View(), .variant = variant}; }

  const std::string path_;
  std::optional<FakeRegions> server_;
  std::optional<Client> client_;
  std::optional<Region> region_;
  Array x_;
};

class RegionCallRetryTest : public RegionCallTest {
 protected:
  RegionCallRetryTest() : RegionCallTest(3) {}
};

TEST_F(RegionCallTest, NeedsNoWithdrawalIfItSucceedsOrIsNotSent) {
  EXPECT_THAT(client_->Transpose(Request(""), kTimeout), IsOk());
  TransposeArgs request = Request("");
  request.x.row_stride = 7;  // below the row
  EXPECT_THAT(client_->Transpose(request, kTimeout).status(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(server_->withdrawn(), IsEmpty());
  EXPECT_THAT(server_->calls(), ElementsAre(1));
}

TEST_F(RegionCallTest, WaitsForTheEndOfACallThatFailed) {
  server_->holds_withdrawals = true;
  std::atomic<bool> returned = false;
  std::thread caller([&] {
    EXPECT_THAT(client_->Transpose(Request("fail"), kTimeout).status(),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("as it was told")));
    returned = true;
  });
  server_->AwaitWithdrawals(1);
  EXPECT_FALSE(returned);
  server_->ConfirmAll();
  caller.join();
  EXPECT_THAT(server_->withdrawn(), ElementsAre(1));
}

TEST_F(RegionCallTest, WaitsBeyondTheDeadline) {
  EXPECT_THAT(client_->Transpose(Request("slow"), absl::Milliseconds(100)).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(server_->withdrawn(), ElementsAre(1));
  EXPECT_THAT(client_->Transpose(Request(""), kTimeout), IsOk());
  EXPECT_THAT(server_->calls(), ElementsAre(1, 2));
}

TEST_F(RegionCallTest, CallsBackWhenTheEndIsConfirmed) {
  server_->holds_withdrawals = true;
  std::atomic<int> called = 0;
  std::latch done(2);
  for (int i = 0; i < 2; ++i) {
    ::warpline::testing::CallAsync(*client_, Request("fail"), kTimeout, {},
                                   [&](const absl::StatusOr<RunResult>& result) {
                                     EXPECT_THAT(result.status(), StatusIs(absl::StatusCode::kUnavailable));
                                     // A callback may wait for other calls, and for regions too.
                                     EXPECT_THAT(client_->Transpose(Request("fail"), kTimeout).status(),
                                                 StatusIs(absl::StatusCode::kUnavailable));
                                     ++called;
                                     done.count_down();
                                   });
  }
  server_->AwaitWithdrawals(2);
  EXPECT_EQ(called, 0);
  server_->ConfirmAll();
  done.wait();
  EXPECT_THAT(server_->withdrawn(), SizeIs(4));
}

TEST_F(RegionCallTest, GivesMemoryOutAgainOnlyAfterTheCall) {
  server_->holds_withdrawals = true;
  std::latch done(1);
  const std::size_t before = region_->free_bytes();
  ::warpline::testing::CallAsync(*client_, Request("fail"), kTimeout, {.destination = {.region = &*region_}},
                                 [&](const absl::StatusOr<RunResult>&) { done.count_down(); });
  server_->AwaitWithdrawals(1);
  x_ = Array();
  EXPECT_EQ(region_->free_bytes(), before - 4096) << "operand and result are still the call's";
  EXPECT_THAT(region_->Allocate(DType::kU8, {kCallBytes}).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("no room")));
  server_->ConfirmAll();
  done.wait();
  EXPECT_EQ(region_->free_bytes(), kCallBytes);
}

TEST_F(RegionCallTest, TheEndOfTheConnectionEndsTheWait) {
  server_->holds_withdrawals = true;
  std::thread caller([&] {
    EXPECT_THAT(client_->Transpose(Request("fail"), kTimeout).status(),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("as it was told")));
  });
  std::latch done(1);
  ::warpline::testing::CallAsync(*client_, Request("fail"), kTimeout, {},
                                 [&](const absl::StatusOr<RunResult>& result) {
                                   EXPECT_THAT(result.status(), StatusIs(absl::StatusCode::kUnavailable));
                                   done.count_down();
                                 });
  server_->AwaitWithdrawals(2);
  server_->CloseRegions();
  caller.join();
  done.wait();
  EXPECT_THAT(client_->Transpose(Request(""), kTimeout).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("is lost")));
}

TEST_F(RegionCallTest, WaitsForEveryRegionOfTheCall) {
  auto other = client_->OpenRegion(kCallBytes, kTimeout);
  ASSERT_THAT(other, IsOk());
  server_->holds_withdrawals = true;
  std::atomic<bool> returned = false;
  std::thread caller([&] {
    const auto result = client_->Transpose(Request("fail"), kTimeout, {.destination = {.region = &*other}});
    EXPECT_THAT(result.status(), StatusIs(absl::StatusCode::kUnavailable));
    returned = true;
  });
  server_->AwaitWithdrawals(1);
  EXPECT_FALSE(returned);
  server_->ConfirmAll();
  // One of the two may have come only now, and is confirmed at once.
  caller.join();
  EXPECT_THAT(server_->calls(), ElementsAre(1));
  EXPECT_EQ(other->free_bytes(), kCallBytes);
}

TEST_F(RegionCallTest, TheClientWaitsForItsCallbacks) {
  server_->holds_withdrawals = true;
  std::atomic<int> called = 0;
  for (int i = 0; i < 3; ++i) {
    ::warpline::testing::CallAsync(*client_, Request("fail"), kTimeout, {},
                                   [&](const absl::StatusOr<RunResult>&) { ++called; });
  }
  server_->AwaitWithdrawals(3);
  std::thread later([&] { server_->ConfirmAll(); });
  client_.reset();
  EXPECT_EQ(called, 3);
  later.join();
}

TEST_F(RegionCallTest, ManyCallsFailAtOnce) {
  constexpr int kCalls = 2000;  // more than a socket takes without being read
  std::latch done(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    ::warpline::testing::CallAsync(*client_, Request(i % 2 == 0 ? "fail" : ""), kTimeout, {},
                                   [&](const absl::StatusOr<RunResult>&) { done.count_down(); });
  }
  done.wait();
  EXPECT_THAT(server_->withdrawn(), SizeIs(kCalls / 2));
  EXPECT_THAT(region_->status(), IsOk());
}

TEST_F(RegionCallRetryTest, GivesEveryAttemptANumber) {
  EXPECT_THAT(client_->Transpose(Request("fail once"), kTimeout, {.destination = {.region = &*region_}}),
              IsOk());
  EXPECT_THAT(server_->calls(), ElementsAre(1, 2));
  EXPECT_THAT(server_->withdrawn(), ElementsAre(1));
}

}  // namespace
}  // namespace warpline::client
