#include "client/src/shared_region.h"

#include <gmock/gmock.h>
#include <grpc/grpc.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <latch>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "tests/client/src/fake_regions.h"
#include "tests/testing/status_matchers.h"

namespace warpline::client {
namespace {

using ::testing::HasSubstr;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

class SharedRegionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { grpc_init(); }

  SharedRegionTest()
      : path_("/tmp/warpline_shared_region_test." + std::to_string(::getpid())), server_(path_) {}
  // Closes the watcher, as a client does. The watcher's thread could be the last to let go of a region, and
  // through the region of the watcher.
  ~SharedRegionTest() override { watcher_->Close(); }

  std::shared_ptr<SharedRegion> Start(absl::Duration withdrawal_timeout) {
    auto memory = RegionMemory::Create(8192);
    auto socket = RegionSocket::Connect(path_ + ".regions", absl::Now() + absl::Seconds(30));
    EXPECT_TRUE(memory.ok() && socket.ok());
    auto id = socket->HandOver("ticket", (*memory)->fd(), absl::Now() + absl::Seconds(30));
    EXPECT_THAT(id, IsOk());
    auto region = SharedRegion::Start(*std::move(memory), *std::move(socket), *std::move(id), table_,
                                      watcher_, withdrawal_timeout);
    EXPECT_THAT(region, IsOk());
    return *std::move(region);
  }

  const std::string path_;
  FakeRegions server_;
  const std::shared_ptr<RegionTable> table_ = std::make_shared<RegionTable>();
  const std::shared_ptr<RegionWatcher> watcher_ = std::make_shared<RegionWatcher>();
};

TEST_F(SharedRegionTest, IsInTheTableWhileItIsThere) {
  auto region = Start(kWithdrawalTimeout);
  EXPECT_EQ(region->id(), "region of ticket");
  EXPECT_EQ(table_->Find(region->data() + 8191, 1), region);
  EXPECT_TRUE(region->IsIn(*table_));
  auto memory = region->Allocate(100);
  region = nullptr;
  EXPECT_FALSE(table_->empty());
  *memory = nullptr;
  EXPECT_TRUE(table_->empty());
  server_.AwaitRegions(0);
}

TEST_F(SharedRegionTest, IsLostIfTheServerConfirmsNothing) {
  const auto region = Start(absl::Milliseconds(50));
  server_.holds_withdrawals = true;
  std::latch ended(1);
  region->Withdraw(5, [&] { ended.count_down(); });
  ended.wait();
  EXPECT_THAT(region->status(), StatusIs(absl::StatusCode::kUnavailable,
                                         HasSubstr("not confirmed the end of a call for 50ms")));
  server_.AwaitRegions(0);
  bool at_once = false;
  region->Withdraw(6, [&] { at_once = true; });
  EXPECT_TRUE(at_once);
}

TEST_F(SharedRegionTest, StaysOpenIfAForkedChildEnds) {
  const auto region = Start(kWithdrawalTimeout);
  const pid_t child = ::fork();
  if (child == 0) {
    std::shared_ptr<SharedRegion>& mine = const_cast<std::shared_ptr<SharedRegion>&>(region);
    mine = nullptr;
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  std::latch ended(1);
  region->Withdraw(7, [&] { ended.count_down(); });
  ended.wait();
  EXPECT_THAT(region->status(), IsOk());
}

TEST_F(SharedRegionTest, EndsWithItsConnection) {
  const auto region = Start(kWithdrawalTimeout);
  server_.holds_withdrawals = true;
  std::latch ended(1);
  region->Withdraw(1, [&] { ended.count_down(); });
  server_.AwaitWithdrawals(1);
  server_.CloseRegions();
  ended.wait();
  EXPECT_THAT(region->status(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("closed")));
  EXPECT_THAT(region->Allocate(1).status(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(region->Pin(region->data(), 1).status(), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace warpline::client
