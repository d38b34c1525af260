// Calls on ordinary arrays that travel through the client's pool, against a server in the test's process.
#include <gmock/gmock.h>
#include <grpc/grpc.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <latch>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/client/src/fake_regions.h"
#include "tests/testing/call_async.h"
#include "tests/testing/patience.h"
#include "tests/testing/status_matchers.h"
#include "warpline/client.h"

namespace warpline::client {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

constexpr absl::Duration kPooledTimeout = absl::Seconds(30);

class PooledCallsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { grpc_init(); }

  PooledCallsTest() : path_("/tmp/warpline_pooled_calls_test." + std::to_string(::getpid())) {
    server_.emplace(path_);
    Connect({});
  }

  // kAuto unless the options say kAlways. Small arrays are shared too unless share_from_bytes is set.
  void Connect(ClientOptions options) {
    if (options.shared_memory == SharedMemory::kExplicit) options.shared_memory = SharedMemory::kAuto;
    if (options.share_from_bytes == ClientOptions{}.share_from_bytes) options.share_from_bytes = 1;
    client_.emplace("unix:" + path_, options);
  }
  static std::vector<std::int32_t> Numbers(std::size_t count, std::int32_t first = 0) {
    std::vector<std::int32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
  }
  static ConstArray View(const std::vector<std::int32_t>& numbers) {
    return {DType::kI32, {static_cast<std::int64_t>(numbers.size())}, 0, numbers.data()};
  }
  static std::vector<std::int32_t> Values(const Array& array) {
    std::vector<std::int32_t> values(array.bytes() / 4);
    if (!values.empty()) std::memcpy(values.data(), array.data(), array.bytes());
    return values;
  }
  // True if a call reads the array in place.
  bool IsShared(const ConstArray& array) {
    const std::size_t opened = server_->sizes().size(), before = server_->sources().size();
    const auto result = client_->Transpose({.x = array}, kPooledTimeout);
    EXPECT_THAT(result, IsOk());
    return server_->sources()[before] == "region" && server_->sizes().size() == opened;
  }
  void LoseRegions() {
    server_->CloseRegions();
    server_->AwaitRegions(0);
  }

  const std::string path_;
  std::optional<FakeRegions> server_;
  std::optional<Client> client_;
};

TEST_F(PooledCallsTest, ShareLargeArrays) {
  const auto x = Numbers(1000, 7);
  const auto result = client_->Transpose({.x = View(x)}, kPooledTimeout);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(Values(result->array), x);
  EXPECT_THAT(server_->sources(), ElementsAre("region"));
  EXPECT_EQ(server_->sinks(), 1);
  EXPECT_THAT(server_->sizes(), ElementsAre(64 << 20));
  // The result is an operand where it lies.
  EXPECT_THAT(client_->Transpose({.x = result->array.View()}, kPooledTimeout), IsOk());
  EXPECT_THAT(server_->sources(), ElementsAre("region", "region"));
  EXPECT_EQ(client_->TakeWarning(), "");
}

TEST_F(PooledCallsTest, SendSmallArraysInMessages) {
  Connect({.share_from_bytes = 4000});
  const auto small = Numbers(999), large = Numbers(1000);
  EXPECT_THAT(client_->Transpose({.x = View(small)}, kPooledTimeout), IsOk());
  EXPECT_EQ(server_->asked(), 0);
  EXPECT_THAT(client_->Transpose({.x = View(large)}, kPooledTimeout), IsOk());
  EXPECT_THAT(client_->Transpose({.x = View(small)}, kPooledTimeout), IsOk());
  EXPECT_THAT(server_->sources(), ElementsAre("inline", "region", "inline"));
}

TEST_F(PooledCallsTest, ExplicitClientsShareNothing) {
  client_.emplace("unix:" + path_, ClientOptions{.share_from_bytes = 1});
  EXPECT_THAT(client_->Transpose({.x = View(Numbers(1000))}, kPooledTimeout), IsOk());
  const auto empty = client_->Empty(DType::kI32, {10}, kPooledTimeout);
  ASSERT_THAT(empty, IsOk());
  EXPECT_EQ(empty->bytes(), 40u);
  EXPECT_THAT(server_->sources(), ElementsAre("inline"));
  EXPECT_EQ(server_->asked() + server_->info_calls(), 0);
}

TEST_F(PooledCallsTest, LeaveThePaddingOfRowsOut) {
  const auto x = Numbers(100 * 13);
  const ConstArray rows{DType::kI32, {100, 10}, 13, x.data()};
  RunArgs args;
  v1::Step& step = *args.program.add_steps();
  step.set_name("y");
  step.mutable_cast()->set_data_type(v1::DATA_TYPE_I32);
  step.add_inputs("x");
  args.program.add_outputs("y");
  args.inputs = {{"x", rows}};
  const auto result = client_->Run(args, kPooledTimeout);
  ASSERT_THAT(result, IsOk());
  const auto values = Values(result->outputs[0].second);
  ASSERT_THAT(values, SizeIs(1000));
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], i / 10 * 13 + i % 10);
  EXPECT_THAT(server_->sources(), ElementsAre("region"));
}

TEST_F(PooledCallsTest, CopyEqualOperandsOnce) {
  // 20 MiB each, so that a region of 64 MiB has no room for a second copy.
  const auto x = Numbers(std::size_t{5} << 20);
  RunArgs args;
  for (const char* name : {"y", "z"}) {
    v1::Step& step = *args.program.add_steps();
    step.set_name(name);
    step.mutable_scale();
    step.add_inputs(name == std::string("y") ? "a" : "b");
    args.program.add_outputs(name);
  }
  args.inputs = {{"a", View(x)}, {"b", View(x)}};
  const auto result = client_->Run(args, kPooledTimeout);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(Values(result->outputs[0].second), x);
  EXPECT_EQ(Values(result->outputs[1].second), x);
  EXPECT_NE(result->outputs[0].second.data(), result->outputs[1].second.data());
  EXPECT_THAT(server_->sources(), ElementsAre("region", "region"));
  EXPECT_THAT(server_->sizes(), SizeIs(1));
  EXPECT_THAT(server_->calls(), SizeIs(1));
}

TEST_F(PooledCallsTest, FillOrdinaryDestinations) {
  const auto x = Numbers(1000, 3);
  std::vector<std::int32_t> out(1000);
  const auto result =
      client_->Transpose({.x = View(x)}, kPooledTimeout, {.destination = {out.data(), out.size() * 4}});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->array.data(), out.data());
  EXPECT_EQ(out, x);
  EXPECT_EQ(server_->sinks(), 1);
  EXPECT_THAT(
      client_->Transpose({.x = View(x)}, kPooledTimeout, {.destination = {out.data(), 3999}}).status(),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the destination has 3999")));
  // The operand itself may be the destination.
  std::vector<std::int32_t> same = x;
  EXPECT_THAT(
      client_->Transpose({.x = View(same)}, kPooledTimeout, {.destination = {same.data(), same.size() * 4}}),
      IsOk());
  EXPECT_EQ(same, x);
}

TEST_F(PooledCallsTest, UseArraysOfEmptyInPlace) {
  const auto a = client_->Empty(DType::kI32, {1000}, kPooledTimeout);
  const auto b = client_->Empty(DType::kI32, {1000}, kPooledTimeout);
  ASSERT_THAT(a, IsOk());
  ASSERT_THAT(b, IsOk());
  const auto x = Numbers(1000, 9);
  std::memcpy(a->data(), x.data(), 4000);
  EXPECT_TRUE(IsShared(a->View()));
  const auto result =
      client_->Transpose({.x = a->View()}, kPooledTimeout, {.destination = {b->data(), b->bytes()}});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->array.data(), b->data());
  EXPECT_EQ(Values(*b), x);
  EXPECT_EQ(server_->sinks(), 2);
  // A part that is not aligned is copied.
  const ConstArray odd{DType::kI32, {10}, 0, static_cast<const std::byte*>(a->data()) + 2};
  const auto of_odd = client_->Transpose({.x = odd}, kPooledTimeout);
  ASSERT_THAT(of_odd, IsOk());
  EXPECT_EQ(std::memcmp(of_odd->array.data(), odd.data, 40), 0);
}

TEST_F(PooledCallsTest, WriteNoResultOverAnOperand) {
  const auto a = client_->Empty(DType::kI32, {1000}, kPooledTimeout);
  ASSERT_THAT(a, IsOk());
  const auto x = Numbers(1000);
  std::memcpy(a->data(), x.data(), 4000);
  server_->on_run = [&] { EXPECT_EQ(Values(*a), x); };
  const ConstArray first{DType::kI32, {900}, 0, a->data()};
  auto* const to = static_cast<std::int32_t*>(a->data()) + 100;
  const auto result = client_->Transpose({.x = first}, kPooledTimeout, {.destination = {to, 3600}});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->array.data(), to);
  EXPECT_EQ(to[0], 0);
  EXPECT_EQ(to[899], 899);
}

TEST_F(PooledCallsTest, SmallResultsAreNotWrittenOverOperandsEither) {
  Connect({.share_from_bytes = 1 << 20});
  const auto a = client_->Empty(DType::kI32, {100}, kPooledTimeout);
  ASSERT_THAT(a, IsOk());
  const auto x = Numbers(100, 4);
  std::memcpy(a->data(), x.data(), 400);
  const auto result =
      client_->Transpose({.x = a->View()}, kPooledTimeout, {.destination = {a->data(), a->bytes()}});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->array.data(), a->data());
  EXPECT_EQ(Values(*a), x);
  EXPECT_EQ(server_->sinks(), 0);
}

TEST_F(PooledCallsTest, CopyResultsOutOfThePoolBeyondAQuarter) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  Connect({.shared_memory = SharedMemory::kAlways, .pool_bytes = 16 * kBytes, .share_from_bytes = kBytes});
  const auto x = Numbers(kBytes / 4);
  std::vector<Array> kept;
  for (int i = 0; i < 6; ++i) {
    const auto result = client_->Transpose({.x = View(x)}, kPooledTimeout);
    ASSERT_THAT(result, IsOk());
    kept.push_back(result->array);
    EXPECT_EQ(Values(kept.back()), x);
  }
  EXPECT_EQ(server_->sinks(), 6);
  const std::size_t before = server_->sources().size();
  for (const Array& array : kept) {
    // A small part is sent if it is not in the pool already.
    ConstArray part = array.View();
    part.shape = {10};
    EXPECT_THAT(client_->Transpose({.x = part}, kPooledTimeout), IsOk());
  }
  auto sources = server_->sources();
  sources.erase(sources.begin(), sources.begin() + static_cast<std::ptrdiff_t>(before));
  EXPECT_THAT(sources, ElementsAre("region", "region", "region", "region", "inline", "inline"));
  EXPECT_THAT(server_->sizes(), ElementsAre(16 << 20));
  kept.erase(kept.begin());
  const auto result = client_->Transpose({.x = View(x)}, kPooledTimeout);
  ASSERT_THAT(result, IsOk());
  ConstArray part = result->array.View();
  part.shape = {10};
  EXPECT_THAT(client_->Transpose({.x = part}, kPooledTimeout), IsOk());
  EXPECT_EQ(server_->sources().back(), "region");
}

TEST_F(PooledCallsTest, SendMessagesWhereThereIsNoRoom) {
  server_->quota = 8192;
  const auto x = Numbers(100000);
  const auto result = client_->Transpose({.x = View(x)}, kPooledTimeout);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(Values(result->array), x);
  EXPECT_THAT(server_->sources(), ElementsAre("inline"));
  EXPECT_THAT(client_->TakeWarning(), HasSubstr("elements travel in messages: 401408 bytes are not to be"));
  EXPECT_EQ(client_->TakeWarning(), "");
  Connect({.shared_memory = SharedMemory::kAlways});
  EXPECT_THAT(client_->Transpose({.x = View(x)}, kPooledTimeout).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("401408 bytes are not to be had")));
  EXPECT_THAT(client_->Empty(DType::kI32, {100000}, kPooledTimeout).status(),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(client_->TakeWarning(), "");
}

TEST_F(PooledCallsTest, ShareWhatFits) {
  Connect({.pool_bytes = 4096});
  const auto x = Numbers(1024);
  EXPECT_THAT(client_->Transpose({.x = View(x)}, kPooledTimeout), IsOk());
  EXPECT_THAT(server_->sources(), ElementsAre("region"));
  EXPECT_EQ(server_->sinks(), 0) << "there is room for one of the two";
}

TEST_F(PooledCallsTest, SendMessagesToServersThatShareNothing) {
  server_->max_region_bytes = 0;
  const auto x = Numbers(1000);
  EXPECT_THAT(client_->Transpose({.x = View(x)}, kPooledTimeout), IsOk());
  EXPECT_THAT(client_->Empty(DType::kI32, {1000}, kPooledTimeout), IsOk());
  EXPECT_EQ(client_->TakeWarning(), "");
  EXPECT_THAT(server_->sources(), ElementsAre("inline"));
  Connect({.shared_memory = SharedMemory::kAlways});
  EXPECT_THAT(client_->Transpose({.x = View(x)}, kPooledTimeout).status(),
              StatusIs(absl::StatusCode::kUnimplemented));
  // Targets without a region socket.
  Client far("localhost:1", {.shared_memory = SharedMemory::kAlways, .share_from_bytes = 1});
  EXPECT_THAT(far.Transpose({.x = View(x)}, kPooledTimeout).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("localhost:1")));
  Client automatic("localhost:1", {.shared_memory = SharedMemory::kAuto});
  EXPECT_THAT(automatic.Empty(DType::kI32, {1000}, kPooledTimeout), IsOk());
}

TEST_F(PooledCallsTest, RetriesKeepWhatIsPlaced) {
  Connect({.max_retries = 3});
  const auto x = Numbers(1000);
  EXPECT_THAT(client_->Transpose({.x = View(x), .variant = "fail once"}, kPooledTimeout), IsOk());
  EXPECT_THAT(server_->sources(), ElementsAre("region", "region"));
  EXPECT_THAT(server_->withdrawn(), ElementsAre(1));
  EXPECT_THAT(server_->calls(), ElementsAre(1, 2));
}

TEST_F(PooledCallsTest, RetriesWaitForTheEndOfTheAttemptBefore) {
  Connect({.max_retries = 3});
  server_->holds_withdrawals = true;
  std::thread caller([&] {
    EXPECT_THAT(client_->Transpose({.x = View(Numbers(1000)), .variant = "fail once"}, kPooledTimeout),
                IsOk());
  });
  server_->AwaitWithdrawals(1);
  absl::SleepFor(absl::Milliseconds(300));  // longer than the delay of a retry
  EXPECT_THAT(server_->sources(), SizeIs(1));
  server_->ConfirmAll();
  caller.join();
}

TEST_F(PooledCallsTest, FailedCallsWaitOnlyIfTheCallersMemoryIsWritten) {
  server_->holds_withdrawals = true;
  const auto x = Numbers(1000);
  const auto failed = StatusIs(absl::StatusCode::kUnavailable, HasSubstr("as it was told"));
  EXPECT_THAT(client_->Transpose({.x = View(x), .variant = "fail"}, kPooledTimeout).status(), failed);
  std::latch done(1);
  ::warpline::testing::CallAsync(*client_, TransposeArgs{.x = View(x), .variant = "fail"}, kPooledTimeout, {},
                                 [&](const absl::StatusOr<RunResult>& result) {
                                   EXPECT_THAT(result.status(), failed);
                                   done.count_down();
                                 });
  done.wait();
  // The memory of neither call is used again yet.
  EXPECT_THAT(client_->Transpose({.x = View(x)}, kPooledTimeout), IsOk());
  const auto out = client_->Empty(DType::kI32, {1000}, kPooledTimeout);
  ASSERT_THAT(out, IsOk());
  std::atomic<bool> returned = false;
  std::thread caller([&] {
    const CallOptions to_out{.destination = {out->data(), out->bytes()}};
    EXPECT_THAT(client_->Transpose({.x = View(x), .variant = "fail"}, kPooledTimeout, to_out).status(),
                failed);
    returned = true;
  });
  server_->AwaitWithdrawals(3);
  EXPECT_FALSE(returned);
  server_->ConfirmAll();
  caller.join();
}

TEST_F(PooledCallsTest, AreSentAgainIfTheRegionWasLost) {
  const auto x = Numbers(1000, 2);
  ASSERT_THAT(client_->Transpose({.x = View(x)}, kPooledTimeout), IsOk());
  std::atomic<int> calls = 0;
  server_->on_run = [&] {
    if (++calls == 1) LoseRegions();
  };
  const auto result = client_->Transpose({.x = View(x)}, kPooledTimeout);
  ASSERT_THAT(result, IsOk()) << "without any retries";
  EXPECT_EQ(Values(result->array), x);
  EXPECT_EQ(calls, 2);
  EXPECT_THAT(server_->sources(), Each("region"));
  EXPECT_THAT(server_->sizes(), SizeIs(2));
}

TEST_F(PooledCallsTest, AreSentAgainOnceOnly) {
  server_->on_run = [&] { LoseRegions(); };
  EXPECT_THAT(client_->Transpose({.x = View(Numbers(1000))}, kPooledTimeout).status(),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(server_->sources(), SizeIs(2));
}

TEST_F(PooledCallsTest, ArraysInLostRegionsAreOrdinary) {
  const auto x = Numbers(1000, 5);
  const auto y = client_->Transpose({.x = View(x)}, kPooledTimeout);
  const auto out = client_->Empty(DType::kI32, {1000}, kPooledTimeout);
  ASSERT_THAT(y, IsOk());
  ASSERT_THAT(out, IsOk());
  for (const bool lost : {true, false}) {
    if (lost) LoseRegions();
    const auto result =
        client_->Transpose({.x = y->array.View()}, kPooledTimeout, {.destination = {out->data(), 4000}});
    ASSERT_THAT(result, IsOk());
    EXPECT_EQ(result->array.data(), out->data());
    EXPECT_EQ(Values(*out), x);
    std::memset(out->data(), 0, 4000);
  }
  EXPECT_THAT(server_->sources(), Each("region"));
}

TEST_F(PooledCallsTest, PlaceAnewAfterARestart) {
  Connect({.max_retries = 20, .shared_memory = SharedMemory::kAlways});
  const auto x = Numbers(1000, 5);
  ASSERT_THAT(client_->Transpose({.x = View(x)}, kPooledTimeout), IsOk());
  server_.reset();
  std::thread later([&] {
    absl::SleepFor(absl::Milliseconds(300));
    server_.emplace(path_);
  });
  const auto result = client_->Transpose({.x = View(x)}, kPooledTimeout);
  later.join();
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(Values(result->array), x);
  EXPECT_THAT(server_->sources(), ElementsAre("region"));
}

TEST_F(PooledCallsTest, AsyncCallsShareToo) {
  constexpr int kCalls = 200;
  std::vector<Array> results(kCalls);
  std::latch done(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    // The operand may change as soon as the call has begun: it is copied.
    const auto x = Numbers(1000, i);
    ::warpline::testing::CallAsync(*client_, TransposeArgs{.x = View(x), .variant = i % 4 == 3 ? "fail" : ""},
                                   kPooledTimeout, {}, [&, i](const absl::StatusOr<RunResult>& result) {
                                     if (result.ok())
                                       results[static_cast<std::size_t>(i)] = result->outputs[0].second;
                                     done.count_down();
                                   });
  }
  done.wait();
  for (int i = 0; i < kCalls; ++i) {
    if (i % 4 == 3) continue;
    EXPECT_EQ(Values(results[static_cast<std::size_t>(i)]), Numbers(1000, i));
  }
  EXPECT_THAT(server_->sources(), Each("region"));
  client_.reset();
  EXPECT_EQ(Values(results[0]), Numbers(1000));
  server_->AwaitRegions(0);
}

TEST_F(PooledCallsTest, AsyncProgramsShareToo) {
  std::latch done(1);
  {
    RunArgs args;
    v1::Step& step = *args.program.add_steps();
    step.set_name("y");
    step.mutable_scale();
    step.add_inputs("x");
    args.program.add_outputs("y");
    const auto x = Numbers(1000, 8);
    args.inputs = {{"x", View(x)}};
    client_->RunAsync(args, kPooledTimeout, {}, [&](const absl::StatusOr<RunResult>& result) {
      ASSERT_THAT(result, IsOk());
      EXPECT_EQ(Values(result->outputs[0].second), Numbers(1000, 8));
      done.count_down();
    });
  }
  done.wait();
  EXPECT_EQ(server_->sinks(), 1);
}

TEST_F(PooledCallsTest, TheClientMayGoBeforeTheServerConfirms) {
  server_->holds_withdrawals = true;
  EXPECT_THAT(client_->Transpose({.x = View(Numbers(1000)), .variant = "fail"}, kPooledTimeout).status(),
              StatusIs(absl::StatusCode::kUnavailable));
  client_.reset();
  server_->AwaitRegions(0);
}

// The server may still write to the destination when it refuses the call, so the call ends with the
// withdrawal.
TEST_F(PooledCallsTest, TheClientGoesAfterTheLastCallback) {
  Connect({.max_retries = 3});
  const auto x = Numbers(1000);
  const auto out = client_->Empty(DType::kI32, {1000}, kPooledTimeout);
  ASSERT_THAT(out, IsOk());
  server_->holds_withdrawals = true;
  std::atomic<bool> ended = false;
  ::warpline::testing::CallAsync(*client_, TransposeArgs{.x = View(x), .variant = "fail"}, kPooledTimeout,
                                 {.destination = {out->data(), out->bytes()}},
                                 [&](const absl::StatusOr<RunResult>& result) {
                                   EXPECT_THAT(result.status(), StatusIs(absl::StatusCode::kUnavailable));
                                   ended = true;
                                 });
  server_->AwaitWithdrawals(1);
  std::thread confirms([&] {
    absl::SleepFor(absl::Milliseconds(100));
    EXPECT_FALSE(ended);
    server_->ConfirmAll();
  });
  client_.reset();
  EXPECT_TRUE(ended);
  confirms.join();
}

TEST_F(PooledCallsTest, CancelledRetriesDoNotWaitForTheServer) {
  Connect({.max_retries = 3});
  server_->holds_withdrawals = true;
  std::stop_source stop;
  std::latch cancelled(1);
  ::warpline::testing::CallAsync(*client_, TransposeArgs{.x = View(Numbers(1000)), .variant = "fail once"},
                                 kPooledTimeout, {.stop = stop.get_token()},
                                 [&](const absl::StatusOr<RunResult>& result) {
                                   EXPECT_THAT(result.status(), StatusIs(absl::StatusCode::kUnavailable));
                                   cancelled.count_down();
                                 });
  server_->AwaitWithdrawals(1);
  absl::SleepFor(absl::Milliseconds(300));  // longer than the delay of a retry
  stop.request_stop();
  cancelled.wait();
  server_->ConfirmAll();
}

}  // namespace
}  // namespace warpline::client
