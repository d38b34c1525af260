// Shared memory between the C++ library and the daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <latch>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "tests/e2e/daemon.h"
#include "tests/testing/call_async.h"
#include "tests/testing/patience.h"
#include "tests/testing/status_matchers.h"
#include "warpline/client.h"
#include "warpline/program.h"

namespace warpline::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

constexpr absl::Duration kTimeout = absl::Seconds(30);
constexpr std::size_t kBytes = std::size_t{16} << 20;

std::vector<float> Floats(const Array& array) {
  std::vector<float> values(array.bytes() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), array.data(), array.bytes());
  return values;
}

class ClientRegionsTest : public ::testing::Test {
 protected:
  explicit ClientRegionsTest(std::vector<std::string> flags = {})
      : path_("/tmp/warpline_client_regions." + std::to_string(::getpid())), flags_(std::move(flags)) {
    flags_.push_back("--listen=unix:" + path_);
    daemon_.emplace(flags_);
    client_.emplace(daemon_->address(), ClientOptions{});
  }

  Region Open(std::size_t bytes = kBytes) {
    auto region = client_->OpenRegion(bytes, kTimeout);
    EXPECT_THAT(region, IsOk());
    return *std::move(region);
  }
  // Values from 1 on.
  Array Count(Region& region, const Shape& shape) {
    absl::StatusOr<Array> array = region.Allocate(DType::kF32, shape);
    EXPECT_THAT(array, IsOk());
    auto* const data = static_cast<float*>(array->data());
    std::iota(data, data + shape.Count(), 1.0f);
    return *std::move(array);
  }
  double Copied() const { return daemon_->Metric("warpline_host_copy_bytes_total"); }

  const std::string path_;
  std::vector<std::string> flags_;
  std::optional<Daemon> daemon_;
  std::optional<Client> client_;
};

TEST_F(ClientRegionsTest, ComputesEveryOperationWithoutACopy) {
  Region region = Open();
  const Array x = Count(region, {2, 3}), b = Count(region, {3, 1});
  const CallOptions to_region{.destination = {.region = &region}};
  const double copied = Copied();
  const auto transposed = client_->Transpose({.x = x.View()}, kTimeout, to_region);
  ASSERT_THAT(transposed, IsOk());
  EXPECT_THAT(Floats(transposed->array), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_EQ(transposed->array.shape(), (Shape{3, 2}));
  const auto product = client_->Gemm({.a = x.View(), .b = b.View()}, kTimeout, to_region);
  ASSERT_THAT(product, IsOk());
  EXPECT_THAT(Floats(product->array), ElementsAre(14, 32));
  const auto sums = client_->Reduce({.x = x.View(), .axes = {0}}, kTimeout, to_region);
  ASSERT_THAT(sums, IsOk());
  EXPECT_THAT(Floats(sums->array), ElementsAre(5, 7, 9));
  RunArgs args{.program = *ParseExpression("p = gemm(x, b); add(p, p)"),
               .inputs = {{"x", x.View()}, {"b", b.View()}},
               .destinations = {{.region = &region}}};
  const auto run = client_->Run(args, kTimeout);
  ASSERT_THAT(run, IsOk());
  EXPECT_THAT(Floats(run->outputs[0].second), ElementsAre(28, 64));
  EXPECT_EQ(Copied(), copied);
}

TEST_F(ClientRegionsTest, MovesLargeArraysWithoutACopy) {
  constexpr std::int64_t kSide = 1024;
  Region region = Open();
  const Array x = Count(region, {kSide, kSide});
  const Array y = *region.Allocate(DType::kF32, {kSide, kSide});
  const double copied = Copied();
  const auto result = client_->Transpose({.x = x.View()}, kTimeout, {.destination = {y.data(), y.bytes()}});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->array.data(), y.data());
  const auto* const from = static_cast<const float*>(x.data());
  const auto* const to = static_cast<const float*>(y.data());
  for (std::int64_t i = 0; i < kSide; ++i) {
    for (std::int64_t j = 0; j < kSide; ++j) ASSERT_EQ(to[j * kSide + i], from[i * kSide + j]);
  }
  EXPECT_EQ(Copied(), copied);
}

TEST_F(ClientRegionsTest, MixesSharedSentAndResidentOperands) {
  Region region = Open(), other = Open(4096);
  const Array a = Count(region, {2, 2}), c = Count(other, {2, 2});
  const std::vector<float> b = {1, 0, 0, 1}, bias = {100, 200};
  const auto v = client_->Put({DType::kF32, {2}, 0, bias.data()}, kTimeout);
  ASSERT_THAT(v, IsOk());
  const GemmArgs args{.a = a.View(),
                      .b = ConstArray{DType::kF32, {2, 2}, 0, b.data()},
                      .c = c.View(),
                      .beta = 10,
                      .bias = *v};
  const std::vector<float> expected = {111, 222, 133, 244};
  const auto sent = client_->Gemm(args, kTimeout);
  ASSERT_THAT(sent, IsOk());
  EXPECT_EQ(Floats(sent->array), expected);
  const auto shared = client_->Gemm(args, kTimeout, {.destination = {.region = &other}});
  ASSERT_THAT(shared, IsOk());
  EXPECT_EQ(Floats(shared->array), expected);
  const auto kept = client_->Gemm(args, kTimeout, {.destination = {.keep = absl::Minutes(1)}});
  ASSERT_THAT(kept, IsOk());
  const auto fetched = client_->Get(*kept->tensor, kTimeout, {.destination = {.region = &region}});
  ASSERT_THAT(fetched, IsOk());
  EXPECT_EQ(Floats(*fetched), expected);
}

TEST_F(ClientRegionsTest, WritesResultsOfResidentOperands) {
  Region region = Open();
  const Array x = Count(region, {2, 3});
  const auto tensor = client_->Put(x.View(), kTimeout);
  ASSERT_THAT(tensor, IsOk());
  const CallOptions to_region{.destination = {.region = &region}};
  const auto result = client_->Transpose({.x = *tensor}, kTimeout, to_region);
  ASSERT_THAT(result, IsOk());
  EXPECT_THAT(Floats(result->array), ElementsAre(1, 4, 2, 5, 3, 6));
  // The library does not know how large this result will be, so it comes in the response.
  const auto by_id = client_->Transpose({.x = {.resident = tensor->id()}}, kTimeout, to_region);
  ASSERT_THAT(by_id, IsOk());
  EXPECT_THAT(Floats(by_id->array), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(
      client_->Transpose({.x = {.shape = {2, 2}, .resident = tensor->id()}}, kTimeout, to_region).status(),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ClientRegionsTest, TakesPartsOfArraysAtAnyElement) {
  Region region = Open();
  const Array x = Count(region, {100}), y = Count(region, {100});
  for (const std::int64_t first : {1, 2, 3, 5, 31, 64}) {
    const auto at = static_cast<std::size_t>(first);
    std::memset(y.data(), 0, y.bytes());
    const ConstArray part{DType::kF32, {4, 2}, 3, static_cast<const float*>(x.data()) + at};
    float* const to = static_cast<float*>(y.data()) + at;
    const auto result = client_->Transpose({.x = part}, kTimeout, {.destination = {to, 8 * sizeof(float)}});
    ASSERT_THAT(result, IsOk());
    const auto v = static_cast<float>(first + 1);
    EXPECT_THAT(Floats(result->array), ElementsAre(v, v + 3, v + 6, v + 9, v + 1, v + 4, v + 7, v + 10));
    EXPECT_EQ(to[-1], 0);
    EXPECT_EQ(to[8], 0) << "nothing is written beyond the result";
  }
}

TEST_F(ClientRegionsTest, TellsTheServersErrors) {
  Region region = Open();
  const Array x = Count(region, {2, 3});
  EXPECT_THAT(client_->Transpose({.x = x.View(), .perm = {0, 7}}, kTimeout).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("perm")));
  EXPECT_THAT(client_->Transpose({.x = x.View(), .variant = "none"}, kTimeout).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  // A result in the place of an operand.
  EXPECT_THAT(client_->Transpose({.x = x.View()}, kTimeout, {.destination = {x.data(), x.bytes()}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("overlap")));
  EXPECT_THAT(client_->Transpose({.x = x.View()}, kTimeout), IsOk());
}

TEST_F(ClientRegionsTest, UsesTheMemoryAgainAfterADeadline) {
  // Slow on either backend with the plainest variant.
  const bool cpu = daemon_->backend() == "cpu";
  Region region = Open(static_cast<std::size_t>(cpu ? 16 : 160) << 20);
  const std::int64_t side = cpu ? 400 : 4096;
  const Array a = Count(region, {side, side});
  const CallOptions to_region{.destination = {.region = &region}};
  const std::size_t before = region.free_bytes();
  int late = 0;
  for (int i = 0; i < 20; ++i) {
    // It takes longer than that.
    const auto result = client_->Gemm({.a = a.View(), .b = a.View(), .variant = cpu ? "reference" : "naive"},
                                      absl::Milliseconds(5 + i), to_region);
    if (!result.ok()) {
      EXPECT_THAT(result.status(), StatusIs(absl::StatusCode::kDeadlineExceeded));
      ++late;
    }
  }
  EXPECT_GT(late, 0);
  EXPECT_EQ(region.free_bytes(), before);
  // The memory that the calls would have written belongs to nobody any more.
  const Array all = *region.Allocate(DType::kU8, {static_cast<std::int64_t>(before) - 4096});
  std::memset(all.data(), 0x5a, all.bytes());
  EXPECT_THAT(client_->Reduce({.x = a.View()}, kTimeout), IsOk());
  for (std::size_t i = 0; i < all.bytes(); ++i) {
    ASSERT_EQ(static_cast<const unsigned char*>(all.data())[i], 0x5a) << "byte " << i;
  }
}

TEST_F(ClientRegionsTest, ComputesWithoutWaiting) {
  constexpr int kCalls = 100;
  Region region = Open();
  const Array x = Count(region, {16, 16});
  // The server limits how many requests of kinds that it does not know wait at one time.
  const CallOptions in_region{.destination = {.region = &region}};
  ASSERT_THAT(client_->Transpose({.x = x.View()}, kTimeout, in_region), IsOk());
  ASSERT_THAT(client_->Gemm({.a = x.View(), .b = x.View()}, kTimeout, in_region), IsOk());
  std::vector<Array> results(kCalls);
  std::latch done(2 * kCalls);
  for (int i = 0; i < kCalls; ++i) {
    ::warpline::testing::CallAsync(*client_, TransposeArgs{.x = x.View()}, kTimeout,
                                   {.destination = {.region = &region}},
                                   [&, i](const absl::StatusOr<RunResult>& result) {
                                     EXPECT_THAT(result, IsOk());
                                     if (result.ok())
                                       results[static_cast<std::size_t>(i)] = result->outputs[0].second;
                                     done.count_down();
                                   });
    // Half of these are late, some before they are sent and some while they run.
    ::warpline::testing::CallAsync(*client_, GemmArgs{.a = x.View(), .b = x.View()},
                                   absl::Microseconds(1 + 40 * i), {.destination = {.region = &region}},
                                   [&](const absl::StatusOr<RunResult>&) { done.count_down(); });
  }
  done.wait();
  for (const Array& result : results) EXPECT_EQ(Floats(result)[1], 17);
  results.clear();
  client_.reset();  // waits for the last callback to have returned, with the result that it was given
  EXPECT_EQ(region.free_bytes(), kBytes - 1024);
}

TEST_F(ClientRegionsTest, TellsTheFiguresWhenTheRegionIsFull) {
  Region region = Open(8192);
  const Array x = Count(region, {1024});
  const Array y = Count(region, {512});
  EXPECT_THAT(client_->Transpose({.x = x.View()}, kTimeout, {.destination = {.region = &region}}).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("of its 8192 bytes, 2048 are free")));
}

TEST_F(ClientRegionsTest, LosesTheRegionWithTheServer) {
  Region region = Open();
  const Array x = Count(region, {2, 3});
  daemon_->Signal(SIGKILL);
  daemon_->Wait();
  EXPECT_THAT(client_->Transpose({.x = x.View()}, kTimeout).status(),
              StatusIs(absl::StatusCode::kUnavailable));
  AwaitThat("the end of the region", [&] { return !region.status().ok(); });
  EXPECT_EQ(Floats(x)[5], 6);
  daemon_.emplace(flags_);
  EXPECT_THAT(client_->Transpose({.x = x.View()}, kTimeout).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("is lost, and another is to be opened")));
  // gRPC notices at its own pace that the server is there again.
  absl::StatusOr<Region> other = absl::UnavailableError("not yet");
  for (int i = 0; i < 300 && !other.ok(); ++i) {
    other = client_->OpenRegion(kBytes, kTimeout);
    if (!other.ok()) absl::SleepFor(absl::Milliseconds(100));
  }
  ASSERT_THAT(other, IsOk());
  const Array y = Count(*other, {2, 3});
  EXPECT_THAT(client_->Transpose({.x = y.View()}, kTimeout, {.destination = {.region = &*other}}), IsOk());
}

TEST_F(ClientRegionsTest, ForkedChildrenNeitherHaveItNorKeepIt) {
  std::optional<Region> region = Open();
  std::optional<Array> x = Count(*region, {1024});
  const pid_t child = ::fork();
  if (child == 0) {
    // mincore() fails with ENOMEM for memory that is not mapped.
    unsigned char resident = 0;
    if (::mincore(x->data(), 4096, &resident) == 0 || errno != ENOMEM) ::_exit(1);
    ::pause();
  }
  EXPECT_THAT(client_->Transpose({.x = x->View()}, kTimeout, {.destination = {.region = &*region}}), IsOk());
  EXPECT_TRUE(daemon_->AwaitMetric("warpline_regions", "", 1));
  x.reset();
  region.reset();
  EXPECT_TRUE(daemon_->AwaitMetric("warpline_regions", "", 0)) << "the child keeps the region open";
  EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "the child has the memory";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

class ClientRegionsLimitTest : public ClientRegionsTest {
 protected:
  // One connection may have 9/16 of it: 1 MiB.
  ClientRegionsLimitTest() : ClientRegionsTest({"--region-bytes=1864136"}) {}
};

TEST_F(ClientRegionsLimitTest, TellsTheServersLimits) {
  EXPECT_THAT(client_->OpenRegion(2 << 20, kTimeout).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("2097152")));
  const auto fits = client_->OpenRegion(1 << 20, kTimeout);
  ASSERT_THAT(fits, IsOk());
  EXPECT_THAT(client_->OpenRegion(4096, kTimeout).status(), StatusIs(absl::StatusCode::kResourceExhausted));
}

class ClientNoRegionsTest : public ClientRegionsTest {
 protected:
  ClientNoRegionsTest() : ClientRegionsTest({"--region-bytes=0"}) {}
};

TEST_F(ClientNoRegionsTest, SaysThatThereAreNone) {
  EXPECT_THAT(client_->OpenRegion(4096, kTimeout).status(), StatusIs(absl::StatusCode::kUnimplemented));
}

TEST(ClientRegionSocketTest, SharesMemoryBesideTcp) {
  const std::string path = "/tmp/warpline_client_region_socket." + std::to_string(::getpid());
  Daemon daemon({"--regions=" + path});
  Client client(daemon.address(), {.region_socket = path});
  auto region = client.OpenRegion(kBytes, kTimeout);
  ASSERT_THAT(region, IsOk());
  const auto x = region->Allocate(DType::kI32, {64, 64});
  ASSERT_THAT(x, IsOk());
  EXPECT_THAT(client.Transpose({.x = x->View()}, kTimeout, {.destination = {.region = &*region}}), IsOk());
  Client other(daemon.address(), {});
  EXPECT_THAT(other.OpenRegion(kBytes, kTimeout).status(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace warpline::client
