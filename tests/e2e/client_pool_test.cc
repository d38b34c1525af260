// The pool of the C++ library against the daemon: ordinary arrays that travel through shared memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "tests/e2e/daemon.h"
#include "tests/testing/status_matchers.h"
#include "warpline/client.h"
#include "warpline/program.h"

namespace warpline::client {
namespace {

using ::testing::HasSubstr;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

constexpr absl::Duration kPoolTimeout = absl::Seconds(30);

class ClientPoolTest : public ::testing::Test {
 protected:
  explicit ClientPoolTest(std::vector<std::string> flags = {})
      : path_("/tmp/warpline_client_pool." + std::to_string(::getpid())), flags_(std::move(flags)) {
    flags_.push_back("--listen=unix:" + path_);
    daemon_.emplace(flags_);
    client_.emplace(daemon_->address(), Options(SharedMemory::kAlways));
  }

  static ClientOptions Options(SharedMemory mode, int max_retries = 0) {
    return {.max_retries = max_retries, .shared_memory = mode};
  }
  static std::vector<float> Numbers(std::int64_t count) {
    std::vector<float> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 1.0f);
    return numbers;
  }
  static ConstArray Matrix(const std::vector<float>& x, std::int64_t rows) {
    return {DType::kF32, {rows, static_cast<std::int64_t>(x.size()) / rows}, 0, x.data()};
  }
  static bool IsTransposed(const Array& y, const std::vector<float>& x, std::int64_t rows) {
    const auto* const to = static_cast<const float*>(y.data());
    const std::int64_t columns = static_cast<std::int64_t>(x.size()) / rows;
    if (y.shape() != Shape{columns, rows}) return false;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        if (to[j * rows + i] != x[static_cast<std::size_t>(i * columns + j)]) return false;
      }
    }
    return true;
  }
  double Copied() const { return daemon_->Metric("warpline_host_copy_bytes_total"); }

  const std::string path_;
  std::vector<std::string> flags_;
  std::optional<Daemon> daemon_;
  std::optional<Client> client_;
};

TEST_F(ClientPoolTest, OrdinaryArraysCostTheServerNoCopy) {
  const auto x = Numbers(512 * 300), b = Numbers(300 * 300);
  const double copied = Copied();
  const auto transposed = client_->Transpose({.x = Matrix(x, 512)}, kPoolTimeout);
  ASSERT_THAT(transposed, IsOk());
  EXPECT_TRUE(IsTransposed(transposed->array, x, 512));
  const auto product = client_->Gemm({.a = Matrix(x, 512), .b = Matrix(b, 300)}, kPoolTimeout);
  ASSERT_THAT(product, IsOk());
  const auto same =
      client_->Gemm({.a = transposed->array.View(), .b = Matrix(b, 300), .trans_a = true}, kPoolTimeout);
  ASSERT_THAT(same, IsOk());
  // All terms are positive, and kernels add the 300 of them in orders of their own.
  constexpr float kTolerance = 300 * std::numeric_limits<float>::epsilon();
  const auto* const found = static_cast<const float*>(same->array.data());
  const auto* const wanted = static_cast<const float*>(product->array.data());
  for (std::size_t i = 0; i < same->array.bytes() / sizeof(float); ++i) {
    ASSERT_NEAR(found[i], wanted[i], kTolerance * wanted[i]) << i;
  }
  EXPECT_EQ(Copied(), copied);
  EXPECT_EQ(daemon_->Metric("warpline_regions"), 1);
  // A small result comes in the message.
  const auto sum = client_->Reduce({.x = Matrix(b, 300)}, kPoolTimeout);
  ASSERT_THAT(sum, IsOk());
  EXPECT_NEAR(*static_cast<const float*>(sum->array.data()), 90000.0 * 90001 / 2, 1000);
}

TEST_F(ClientPoolTest, RowsWithPaddingAndDestinations) {
  const auto x = Numbers(512 * 300), dense = Numbers(512 * 200);
  ConstArray rows = Matrix(x, 512);
  rows.shape = {512, 200};
  rows.row_stride = 300;
  std::vector<float> out(dense.size());
  const auto y = client_->Transpose({.x = rows}, kPoolTimeout,
                                    {.destination = {out.data(), out.size() * sizeof(float)}});
  ASSERT_THAT(y, IsOk());
  EXPECT_EQ(y->array.data(), out.data());
  for (std::size_t i = 0; i < 512; ++i) {
    for (std::size_t j = 0; j < 200; ++j) ASSERT_EQ(out[j * 512 + i], x[i * 300 + j]);
  }
}

TEST_F(ClientPoolTest, ProgramsShareTheirOutputs) {
  const auto x = Numbers(400 * 300);
  const auto empty = client_->Empty(DType::kF32, {300, 400}, kPoolTimeout);
  ASSERT_THAT(empty, IsOk());
  RunArgs args{.program = *ParseExpression("t = transpose(x); u = add(t, t); transpose(u)"),
               .inputs = {{"x", Matrix(x, 400)}}};
  args.program.add_outputs("t");
  args.destinations = {{}, {empty->data(), empty->bytes()}};
  const double copied = Copied();
  const auto result = client_->Run(args, kPoolTimeout);
  ASSERT_THAT(result, IsOk());
  const auto* const twice = static_cast<const float*>(result->outputs[0].second.data());
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(twice[i], 2 * x[i]);
  EXPECT_EQ(result->outputs[1].second.data(), empty->data());
  EXPECT_TRUE(IsTransposed(*empty, x, 400));
  EXPECT_EQ(Copied(), copied);
}

TEST_F(ClientPoolTest, ADestinationMayOverlapTheOperand) {
  const auto x = Numbers(400 * 400);
  const auto a = client_->Empty(DType::kF32, {400, 400}, kPoolTimeout);
  ASSERT_THAT(a, IsOk());
  std::memcpy(a->data(), x.data(), a->bytes());
  const auto y = client_->Transpose({.x = a->View()}, kPoolTimeout, {.destination = {a->data(), a->bytes()}});
  ASSERT_THAT(y, IsOk());
  EXPECT_TRUE(IsTransposed(*a, x, 400));
}

TEST_F(ClientPoolTest, ARestartFailsNoCall) {
  client_.emplace(daemon_->address(), Options(SharedMemory::kAlways, /*max_retries=*/100));
  const auto x = Numbers(512 * 300);
  auto kept = client_->Transpose({.x = Matrix(x, 512)}, kPoolTimeout);
  ASSERT_THAT(kept, IsOk());
  std::atomic<bool> stop = false;
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      while (!stop) {
        const auto y = client_->Transpose({.x = Matrix(x, 512)}, kPoolTimeout);
        EXPECT_THAT(y, IsOk());
        EXPECT_TRUE(y.ok() && IsTransposed(y->array, x, 512));
        // The operand lies in a region that is lost at some time.
        EXPECT_THAT(client_->Transpose({.x = kept->array.View()}, kPoolTimeout), IsOk());
      }
    });
  }
  for (const int signal : {SIGTERM, SIGKILL}) {
    absl::SleepFor(absl::Milliseconds(200));
    daemon_->Signal(signal);
    daemon_->Wait();
    daemon_.emplace(flags_);
  }
  absl::SleepFor(absl::Milliseconds(200));
  stop = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_TRUE(IsTransposed(kept->array, x, 512));
}

TEST_F(ClientPoolTest, AnotherClientHasTheRoomOfOneThatClosed) {
  for (int i = 0; i < 3; ++i) {
    client_.emplace(daemon_->address(), Options(SharedMemory::kAlways));
    EXPECT_THAT(client_->Empty(DType::kU8, {1 << 20}, kPoolTimeout), IsOk());
  }
}

class ClientPoolLimitTest : public ClientPoolTest {
 protected:
  // One connection may have 9/16 of it: 4 MiB and little more.
  ClientPoolLimitTest() : ClientPoolTest({"--region-bytes=7300K"}) {}
};

TEST_F(ClientPoolLimitTest, MessagesTakeWhatHasNoRoom) {
  const auto held = client_->Empty(DType::kU8, {4 << 20}, kPoolTimeout);
  ASSERT_THAT(held, IsOk());
  Client other(daemon_->address(), Options(SharedMemory::kAuto));
  const auto x = Numbers(512 * 300);
  for (int i = 0; i < 2; ++i) {
    const auto y = other.Transpose({.x = Matrix(x, 512)}, kPoolTimeout);
    ASSERT_THAT(y, IsOk());
    EXPECT_TRUE(IsTransposed(y->array, x, 512));
  }
  EXPECT_THAT(other.TakeWarning(), HasSubstr("elements travel in messages: "));
  EXPECT_EQ(other.TakeWarning(), "");
  EXPECT_THAT(client_->Transpose({.x = Matrix(x, 512)}, kPoolTimeout).status(),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(ClientPoolLimitTest, AClientWaitsForTheRoomOfOneThatClosed) {
  for (int i = 0; i < 5; ++i) {
    client_.emplace(daemon_->address(), Options(SharedMemory::kAlways));
    EXPECT_THAT(client_->Empty(DType::kU8, {4 << 20}, kPoolTimeout), IsOk());
  }
}

class ClientPoolNoRegionsTest : public ClientPoolTest {
 protected:
  ClientPoolNoRegionsTest() : ClientPoolTest({"--region-bytes=0"}) {}
};

TEST_F(ClientPoolNoRegionsTest, SharesNothing) {
  const auto x = Numbers(512 * 300);
  EXPECT_THAT(client_->Transpose({.x = Matrix(x, 512)}, kPoolTimeout).status(),
              StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(client_->Empty(DType::kF32, {10}, kPoolTimeout).status(),
              StatusIs(absl::StatusCode::kUnimplemented));
  Client other(daemon_->address(), Options(SharedMemory::kAuto));
  EXPECT_THAT(other.Transpose({.x = Matrix(x, 512)}, kPoolTimeout), IsOk());
  EXPECT_THAT(other.Empty(DType::kF32, {10}, kPoolTimeout), IsOk());
  EXPECT_EQ(other.TakeWarning(), "");
}

}  // namespace
}  // namespace warpline::client
