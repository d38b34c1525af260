// Tensors on the server, through the C++ library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/e2e/daemon.h"
#include "warpline/client.h"
#include "warpline/program.h"

namespace warpline::client {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr absl::Duration kTensorTimeout = absl::Seconds(30);

std::vector<float> FloatsOf(const Array& array) {
  std::vector<float> values(array.bytes() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), array.data(), array.bytes());
  return values;
}

class ClientTensorsTest : public testing::Test {
 protected:
  explicit ClientTensorsTest(std::vector<std::string> flags = {})
      : daemon_(std::move(flags)), client_(daemon_.address(), {.max_retries = 3}) {}

  ConstArray Of(const std::vector<float>& values, const Shape& shape) const {
    return {DType::kF32, shape, 0, values.data()};
  }

  Daemon daemon_;
  Client client_;
  const std::vector<float> x_ = {1, 2, 3, 4, 5, 6};
  const std::vector<float> b_ = {1, 10, 100};
};

TEST_F(ClientTensorsTest, BringsElementsThereAndBack) {
  std::vector<float> values(5 << 18);  // 5 MiB
  std::iota(values.begin(), values.end(), 0);
  for (const std::int64_t count : {0, 1, (1 << 18) + 1, 5 << 18}) {
    for (const int channels : {0, 1, 4, 16}) {
      const auto tensor = client_.Put(Of(values, {count}), kTensorTimeout, {.channels = channels});
      ASSERT_TRUE(tensor.ok()) << tensor.status();
      const auto back = client_.Get(*tensor, kTensorTimeout, {.channels = channels});
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(FloatsOf(*back), std::vector<float>(values.begin(), values.begin() + count));
    }
  }
}

TEST_F(ClientTensorsTest, LeavesThePaddingOfRowsHere) {
  const std::vector<float> padded = {1, 2, 3, 0, 4, 5, 6, 0};
  const auto tensor = client_.Put({DType::kF32, {2, 3}, 4, padded.data()}, kTensorTimeout);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(FloatsOf(*client_.Get(*tensor, kTensorTimeout)), x_);
}

TEST_F(ClientTensorsTest, ComputesWithTensorsAndKeepsResults) {
  const auto x = client_.Put(Of(x_, {2, 3}), kTensorTimeout), b = client_.Put(Of(b_, {3, 1}), kTensorTimeout);
  ASSERT_TRUE(x.ok() && b.ok());
  const CallOptions keep{.destination = {.keep = absl::Minutes(5)}};
  const auto product = client_.Gemm({.a = *x, .b = *b}, kTensorTimeout, keep);
  ASSERT_TRUE(product.ok()) << product.status();
  ASSERT_TRUE(product->tensor);
  EXPECT_EQ(product->tensor->shape(), (Shape{2, 1}));
  EXPECT_EQ(product->tensor->info().ttl, absl::Minutes(5));
  EXPECT_EQ(FloatsOf(*client_.Get(*product->tensor, kTensorTimeout)), (std::vector<float>{321, 654}));
  const auto sum = client_.Reduce({.x = *product->tensor}, kTensorTimeout);
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_FALSE(sum->tensor);
  EXPECT_EQ(FloatsOf(sum->array), std::vector<float>{975});

  RunArgs args{.program = *ParseExpression("p = gemm(x, b); add(p, p)"),
               .inputs = {{"x", *x}, {"b", Of(b_, {3, 1})}},
               .destinations = {{}, {.keep = absl::ZeroDuration()}}};
  args.program.clear_outputs();
  args.program.add_outputs("2.add");
  args.program.add_outputs("p");
  const auto run = client_.Run(args, kTensorTimeout);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(FloatsOf(run->outputs[0].second), (std::vector<float>{642, 1308}));
  EXPECT_FALSE(run->tensors[0]);
  ASSERT_TRUE(run->tensors[1]);
  EXPECT_EQ(FloatsOf(*client_.Get(*run->tensors[1], kTensorTimeout)), (std::vector<float>{321, 654}));
  EXPECT_THAT(*client_.ListTensors(kTensorTimeout), SizeIs(4));
}

TEST_F(ClientTensorsTest, KeepsLeasesWhileThereAreHandlesAndNoLonger) {
  std::string id;
  {
    const auto tensor = client_.Put(Of(x_, {6}), kTensorTimeout, {.ttl = absl::Seconds(1)});
    id = tensor->id();
    absl::SleepFor(absl::Milliseconds(1800));
    EXPECT_TRUE(client_.Get(*tensor, kTensorTimeout).ok());
  }
  for (int i = 0; i < 1000 && client_.Attach(id, kTensorTimeout).ok(); ++i)
    absl::SleepFor(absl::Milliseconds(10));
  EXPECT_TRUE(absl::IsNotFound(client_.Attach(id, kTensorTimeout).status()));
}

TEST_F(ClientTensorsTest, DropsWhatIsLeftWhenAClientEnds) {
  std::string released;
  {
    Client other(daemon_.address(), {});
    const auto dropped = other.Put(Of(x_, {6}), kTensorTimeout);
    auto kept = other.Put(Of(x_, {6}), kTensorTimeout);
    ASSERT_TRUE(dropped.ok() && kept.ok());
    released = kept->Release();
  }
  const auto tensors = client_.ListTensors(kTensorTimeout);
  ASSERT_THAT(*tensors, SizeIs(1));
  EXPECT_EQ((*tensors)[0].id, released);
}

TEST_F(ClientTensorsTest, DropsATensorWhosePutFailed) {
  // The deadline passes when the first message has been sent, however fast that is.
  const std::vector<float> values(2 << 20);
  const absl::Duration timeout = absl::Seconds(2);
  const auto wait = [start = absl::Now(), timeout](std::size_t) {
    absl::SleepFor(start + timeout + absl::Milliseconds(50) - absl::Now());
  };
  const auto tensor = client_.Put(Of(values, {2 << 20}), timeout, {.channels = 4, .progress = wait});
  EXPECT_TRUE(absl::IsDeadlineExceeded(tensor.status())) << tensor.status();
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_resident_tensors", "", 0));
}

TEST_F(ClientTensorsTest, TakesNoTensorsOfOtherServersOrOfNone) {
  Daemon other_daemon;
  Client other(other_daemon.address(), {});
  const auto theirs = other.Put(Of(x_, {6}), kTensorTimeout);
  ASSERT_TRUE(theirs.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(client_.Get(theirs->id(), kTensorTimeout).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(client_.Transpose({.x = *theirs}, kTensorTimeout).status()));
  EXPECT_TRUE(absl::IsNotFound(client_.Attach("no such id", kTensorTimeout).status()));
}

TEST_F(ClientTensorsTest, TellsTransfersAtTheSameTimeApart) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      const std::vector<float> values((3 << 18) + i, static_cast<float>(i));
      for (int round = 0; round < 3; ++round) {
        const auto tensor = client_.Put(Of(values, {static_cast<std::int64_t>(values.size())}),
                                        kTensorTimeout, {.channels = 2});
        ASSERT_TRUE(tensor.ok()) << tensor.status();
        const auto back = client_.Get(*tensor, kTensorTimeout, {.channels = 2});
        ASSERT_TRUE(back.ok()) << back.status();
        EXPECT_EQ(FloatsOf(*back), values);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ClientTensorsTest, ThousandsOfSmallResultsCostNoCallsOfTheirOwn) {
  constexpr int kTensors = 2000;
  const auto calls = [this](const std::string& method) {
    return daemon_.Metric("grpc_server_handled_total", "grpc_method=\"" + method + "\"");
  };
  absl::Duration ttl = absl::Seconds(3), elapsed;
  {
    Client client(daemon_.address(), {});
    std::vector<Tensor> kept;
    for (int i = 0; i < kTensors; ++i) {
      auto result = client.Transpose({.x = Of(x_, {2, 3})}, kTensorTimeout, {.destination = {.keep = ttl}});
      ASSERT_TRUE(result.ok()) << result.status();
      kept.push_back(*std::move(result->tensor));
    }
    EXPECT_EQ(daemon_.Metric("warpline_resident_tensors"), kTensors);
    const double before = calls("Renew");
    const absl::Time start = absl::Now();
    absl::SleepFor(2 * ttl);  // the last use is longer ago than a lease
    EXPECT_EQ(daemon_.Metric("warpline_resident_tensors"), kTensors);
    elapsed = absl::Now() - start;
    EXPECT_GE(calls("Renew") - before, 2);
    // Each call renews a thousand, after a quarter of the lease or later.
    EXPECT_LE(calls("Renew") - before, kTensors / 1000 * (elapsed / (ttl / 4) + 1));
    EXPECT_EQ(FloatsOf(*client.Get(kept.front(), kTensorTimeout)), (std::vector<float>{1, 4, 2, 5, 3, 6}));
    EXPECT_EQ(calls("Drop"), 0);
  }
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_resident_tensors", "", 0));
  EXPECT_LE(calls("Drop"), 3);
}

TEST_F(ClientTensorsTest, ACallFreesItsOperands) {
  const CallOptions keep{.destination = {.keep = absl::Minutes(5)}};
  auto x = client_.Put(Of(x_, {2, 3}), kTensorTimeout);
  ASSERT_TRUE(x.ok()) << x.status();
  CallOptions freeing = keep;
  freeing.free_after = {x->id()};
  const auto y = client_.Transpose({.x = *x}, kTensorTimeout, freeing);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(daemon_.Metric("warpline_resident_tensors"), 1);
  EXPECT_TRUE(absl::IsNotFound(client_.Get(*x, kTensorTimeout).status()));
  { const Tensor gone = *std::move(x); }  // sends no Drop
  // A program, without waiting.
  RunArgs program{.program = *ParseExpression("reduce(y, op=sum)"), .inputs = {{"y", *y->tensor}}};
  absl::Notification done;
  client_.RunAsync(program, kTensorTimeout, {.free_after = {y->tensor->id()}},
                   [&](absl::StatusOr<RunResult> result) {
                     EXPECT_TRUE(result.ok()) << result.status();
                     done.Notify();
                   });
  done.WaitForNotification();
  EXPECT_EQ(daemon_.Metric("warpline_resident_tensors"), 0);
  client_.Close();
  EXPECT_EQ(daemon_.Metric("grpc_server_handled_total", "grpc_method=\"Drop\""), 0);
}

class ClientTensorsQuotaTest : public ClientTensorsTest {
 protected:
  ClientTensorsQuotaTest() : ClientTensorsTest({"--resident-bytes=32M"}) {}
};

TEST_F(ClientTensorsQuotaTest, TellsTheFiguresWhenTheServerIsFull) {
  const std::vector<float> values(5'000'000);
  const auto first = client_.Put(Of(values, {5'000'000}), kTensorTimeout);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = client_.Put(Of(values, {5'000'000}), kTensorTimeout);
  EXPECT_TRUE(absl::IsResourceExhausted(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("20000000 bytes"));
}

}  // namespace
}  // namespace warpline::client
