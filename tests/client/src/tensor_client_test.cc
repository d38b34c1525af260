// Resident tensors through the client, with a server that fails as it is told.
#include <gmock/gmock.h>
#include <grpc/grpc.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/client/src/fake_tensors.h"
#include "warpline/client.h"

namespace warpline::client {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kTensorTimeout = absl::Seconds(30);
constexpr std::int64_t kMiB = 1 << 20;

// An error after which the call is to be made again in 10 ms.
grpc::Status TryAgain(grpc::StatusCode code) {
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_nanos(10'000'000);
  google::rpc::Status status;
  status.set_code(code);
  static_cast<void>(status.add_details()->PackFrom(retry));
  return grpc::Status(code, "again", status.SerializeAsString());
}

// A fault that answers so many times with each of the statuses in turn, at messages that begin at `offset`.
FakeTensors::Fault Once(std::int64_t offset, std::vector<grpc::Status> statuses) {
  const auto left = std::make_shared<std::vector<grpc::Status>>(std::move(statuses));
  const auto mutex = std::make_shared<std::mutex>();
  return [=](grpc::ServerContext&, std::int64_t at) {
    const std::lock_guard lock(*mutex);
    if (at != offset || left->empty()) return grpc::Status::OK;
    grpc::Status status = left->front();
    left->erase(left->begin());
    return status;
  };
}

bool Await(const std::function<bool()>& condition) {
  for (int i = 0; i < 3000 && !condition(); ++i) absl::SleepFor(absl::Milliseconds(10));
  return condition();
}

class TensorClientTest : public testing::Test {
 protected:
  // Kept up between the tests: each full shutdown of gRPC 1.51 with a server in the process takes 10 s.
  static void SetUpTestSuite() { grpc_init(); }

  TensorClientTest() : target_("unix:/tmp/warpline_tensor_client_test." + std::to_string(::getpid())) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(target_, grpc::InsecureServerCredentials());
    builder.RegisterService(&fake_);
    server_ = builder.BuildAndStart();
    std::iota(elements_.begin(), elements_.end(), 0);
  }

  ConstArray FirstBytes(std::int64_t bytes) const { return {DType::kI32, {bytes / 4}, 0, elements_.data()}; }
  // The elements of a tensor, as the server has them.
  std::string StoredBytes(const std::string& id) const { return fake_.tensors().at(id).bytes; }
  std::string Expected(std::int64_t bytes) const {
    return {reinterpret_cast<const char*>(elements_.data()), static_cast<std::size_t>(bytes)};
  }

  std::string target_;
  FakeTensors fake_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::int32_t> elements_ = std::vector<std::int32_t>(5 * kMiB / 4);
};

TEST_F(TensorClientTest, BringsElementsThereAndBack) {
  Client client(target_, {});
  for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{4}, kMiB, 5 * kMiB - 4}) {
    for (const int channels : {0, 1, 3}) {
      const absl::StatusOr<Tensor> tensor =
          client.Put(FirstBytes(bytes), kTensorTimeout, {.ttl = absl::Minutes(1), .channels = channels});
      ASSERT_TRUE(tensor.ok()) << tensor.status();
      EXPECT_EQ(tensor->info().ttl, absl::Minutes(1));
      EXPECT_EQ(tensor->shape(), (Shape{bytes / 4}));
      EXPECT_EQ(StoredBytes(tensor->id()), Expected(bytes));
      EXPECT_EQ(fake_.tensors().at(tensor->id()).info.missing_bytes(), 0);
      const absl::StatusOr<Array> back = client.Get(*tensor, kTensorTimeout, {.channels = channels});
      ASSERT_TRUE(back.ok()) << back.status();
      ASSERT_EQ(back->bytes(), static_cast<std::size_t>(bytes));
      EXPECT_EQ(std::memcmp(back->data(), elements_.data(), back->bytes()), 0);
    }
  }
}

TEST_F(TensorClientTest, CarriesRangesAtTheSameTime) {
  Client client(target_, {});
  // Each call waits for the others to have begun.
  std::atomic<int> calls = 0;
  fake_.put_fault = [&](grpc::ServerContext&, std::int64_t offset) {
    if (offset % (2 * kMiB) == 0) ++calls;
    return Await([&] { return calls == 3; }) ? grpc::Status::OK
                                             : grpc::Status(grpc::StatusCode::INTERNAL, "alone");
  };
  const absl::StatusOr<Tensor> tensor = client.Put(FirstBytes(5 * kMiB), kTensorTimeout, {.channels = 3});
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(fake_.count("Put"), 3u);
  EXPECT_EQ(StoredBytes(tensor->id()), Expected(5 * kMiB));
}

TEST_F(TensorClientTest, LeavesThePaddingOfRowsHere) {
  Client client(target_, {});
  for (const std::int64_t columns : {std::int64_t{3}, std::int64_t{3000}}) {
    const std::int64_t stride = columns + 2, rows = 200;
    const absl::StatusOr<Tensor> tensor =
        client.Put({DType::kI32, {rows, columns}, stride, elements_.data()}, kTensorTimeout);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    std::string expected;
    for (std::int64_t row = 0; row < rows; ++row) {
      expected.append(reinterpret_cast<const char*>(&elements_[row * stride]), columns * 4);
    }
    EXPECT_EQ(StoredBytes(tensor->id()), expected);
  }
}

TEST_F(TensorClientTest, WritesToTheDestination) {
  Client client(target_, {});
  const absl::StatusOr<Tensor> tensor = client.Put(FirstBytes(kMiB), kTensorTimeout);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  std::vector<std::int32_t> back(kMiB / 4);
  ASSERT_TRUE(client.Get(tensor->id(), kTensorTimeout, {.destination = {back.data(), kMiB}}).ok());
  EXPECT_EQ(std::memcmp(back.data(), elements_.data(), kMiB), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(
      client.Get(*tensor, kTensorTimeout, {.destination = {back.data(), kMiB - 1}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      client.Get(*tensor, kTensorTimeout, {.destination = {.keep = absl::Minutes(1)}}).status()));
}

TEST_F(TensorClientTest, SendsARangeAgain) {
  for (const grpc::Status& status :
       {grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone"), TryAgain(grpc::StatusCode::ABORTED),
        TryAgain(grpc::StatusCode::RESOURCE_EXHAUSTED)}) {
    Client patient(target_, {.max_retries = 2});
    fake_.put_fault = Once(3 * kMiB, {status, status});
    const std::size_t before = fake_.count("Put");
    std::vector<std::size_t> progress;
    const absl::StatusOr<Tensor> tensor =
        patient.Put(FirstBytes(5 * kMiB), kTensorTimeout,
                    {.channels = 2, .progress = [&](std::size_t bytes) { progress.push_back(bytes); }});
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(fake_.count("Put") - before, 4u);  // two ranges, one of them three times
    EXPECT_EQ(StoredBytes(tensor->id()), Expected(5 * kMiB));
    EXPECT_EQ(progress.back(), static_cast<std::size_t>(5 * kMiB));

    fake_.put_fault = Once(3 * kMiB, {status});
    Client once(target_, {});
    EXPECT_EQ(
        static_cast<int>(once.Put(FirstBytes(5 * kMiB), kTensorTimeout, {.channels = 1}).status().code()),
        static_cast<int>(status.error_code()));
  }
  // Without a delay from the server it is no use.
  fake_.put_fault = Once(0, {grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "full")});
  Client patient(target_, {.max_retries = 2});
  EXPECT_TRUE(absl::IsResourceExhausted(patient.Put(FirstBytes(4), kTensorTimeout).status()));
}

TEST_F(TensorClientTest, GoesOnWhereAGetFailed) {
  Client client(target_, {.max_retries = 1});
  const absl::StatusOr<Tensor> tensor = client.Put(FirstBytes(5 * kMiB), kTensorTimeout);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  std::atomic<int> firsts = 0;
  const FakeTensors::Fault fault = Once(3 * kMiB, {grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone")});
  fake_.get_fault = [&](grpc::ServerContext& context, std::int64_t at) {
    firsts += at == 0 ? 1 : 0;
    return fault(context, at);
  };
  const absl::StatusOr<Array> back = client.Get(*tensor, kTensorTimeout, {.channels = 1});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(std::memcmp(back->data(), elements_.data(), back->bytes()), 0);
  EXPECT_EQ(firsts, 1);
  EXPECT_EQ(fake_.count("Get"), 2u);
}

TEST_F(TensorClientTest, AsksWhetherARangeThatSeemedToFailIsThere) {
  Client client(target_, {.max_retries = 3});
  fake_.late_fault = Once(0, {grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone")});
  absl::StatusOr<Tensor> tensor = client.Put(FirstBytes(2 * kMiB), kTensorTimeout, {.channels = 1});
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(StoredBytes(tensor->id()), Expected(2 * kMiB));
  EXPECT_EQ(fake_.count("Renew"), 1u);
  // An error that means what it says is reported.
  fake_.put_fault = Once(0, {grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone"),
                             grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "wrong")});
  tensor = client.Put(FirstBytes(2 * kMiB), kTensorTimeout, {.channels = 1});
  EXPECT_TRUE(absl::IsInvalidArgument(tensor.status())) << tensor.status();
  EXPECT_EQ(fake_.count("Renew"), 2u);
}

TEST_F(TensorClientTest, EndsAllChannelsWhenOneFailsAndDropsTheTensor) {
  Client client(target_, {});
  std::atomic<int> waiting = 0, cancelled = 0;
  fake_.put_fault = [&](grpc::ServerContext& context, std::int64_t offset) {
    if (offset == 0) {
      return Await([&] { return waiting == 2; })
                 ? grpc::Status(grpc::StatusCode::DATA_LOSS, "broken")
                 : grpc::Status(grpc::StatusCode::INTERNAL, "the others did not begin");
    }
    if (offset % (2 * kMiB) != 0) return grpc::Status::OK;
    ++waiting;
    cancelled += Await([&] { return context.IsCancelled(); }) ? 1 : 0;
    return grpc::Status(grpc::StatusCode::CANCELLED, "cancelled");
  };
  const absl::StatusOr<Tensor> tensor = client.Put(FirstBytes(5 * kMiB), kTensorTimeout, {.channels = 3});
  EXPECT_TRUE(absl::IsDataLoss(tensor.status())) << tensor.status();
  EXPECT_TRUE(Await([&] { return cancelled == 2; }));
  EXPECT_TRUE(Await([&] { return fake_.tensors().empty(); }));
}

TEST_F(TensorClientTest, ObeysTheDeadline) {
  Client client(target_, {});
  const auto stuck = [](grpc::ServerContext& context, std::int64_t) {
    Await([&] { return context.IsCancelled(); });
    return grpc::Status(grpc::StatusCode::CANCELLED, "cancelled");
  };
  fake_.put_fault = stuck;
  auto memory = std::make_unique<std::vector<std::int32_t>>(elements_);
  const auto put =
      client.Put({DType::kI32, {5 * kMiB / 4}, 0, memory->data()}, absl::Milliseconds(200), {.channels = 2});
  memory.reset();  // a sanitizer sees who still reads it
  EXPECT_TRUE(absl::IsDeadlineExceeded(put.status())) << put.status();
  fake_.put_fault = nullptr;
  const absl::StatusOr<Tensor> tensor = client.Put(FirstBytes(5 * kMiB), kTensorTimeout);
  fake_.get_fault = stuck;
  EXPECT_TRUE(absl::IsDeadlineExceeded(client.Get(*tensor, absl::Milliseconds(200)).status()));
  for (absl::Duration timeout : {absl::ZeroDuration(), absl::InfiniteDuration()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(client.Put(FirstBytes(4), timeout).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(client.Get(*tensor, timeout).status()));
  }
}

TEST_F(TensorClientTest, DropsATensorWithItsHandleUnlessItIsReleased) {
  std::string released;
  {
    Client client(target_, {});
    absl::StatusOr<Tensor> first = client.Put(FirstBytes(4), kTensorTimeout);
    absl::StatusOr<Tensor> second = client.Put(FirstBytes(8), kTensorTimeout);
    const absl::StatusOr<Tensor> third = client.Put(FirstBytes(12), kTensorTimeout);
    ASSERT_THAT(fake_.tensors(), SizeIs(3));
    const std::string id = first->id();
    { const Tensor moved = *std::move(first); }
    EXPECT_TRUE(Await([&] { return fake_.tensors().count(id) == 0; }));
    released = second->Release();
    *second = *std::move(client.Attach(released, kTensorTimeout));
    EXPECT_EQ(second->bytes(), 8u);
  }  // the client drops the third
  ASSERT_THAT(fake_.tensors(), SizeIs(1));
  EXPECT_EQ(fake_.tensors().begin()->first, released);
}

TEST_F(TensorClientTest, HandlesMayOutliveTheClient) {
  std::optional<Tensor> tensor;
  {
    Client client(target_, {});
    tensor = *client.Put(FirstBytes(4), kTensorTimeout);
  }
  EXPECT_THAT(fake_.tensors(), IsEmpty());
  tensor.reset();
}

TEST_F(TensorClientTest, RenewsLeasesWhileThereAreHandles) {
  Client client(target_, {});
  fake_.ttl_seconds = 0.1;
  absl::StatusOr<Tensor> tensor = client.Put(FirstBytes(4), kTensorTimeout);
  EXPECT_TRUE(Await([&] { return fake_.count("Renew") >= 3; }));
  const std::string id = tensor->Release();
  // An attached one is renewed if that is asked for, but not dropped.
  const std::size_t before = fake_.count("Renew");
  {
    const auto attached = client.Attach(id, kTensorTimeout, {.renew = true});
    EXPECT_TRUE(Await([&] { return fake_.count("Renew") >= before + 4; }));
  }
  EXPECT_THAT(fake_.tensors(), SizeIs(1));
  const absl::StatusOr<TensorInfo> renewed = client.Renew(id, absl::Seconds(7), kTensorTimeout);
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_EQ(renewed->ttl, absl::Seconds(7));
}

TEST_F(TensorClientTest, RenewsAndDropsManyWithFewCalls) {
  fake_.ttl_seconds = 0.8;
  Client client(target_, {});
  {
    std::vector<Tensor> tensors;
    for (int i = 0; i < 100; ++i) tensors.push_back(*client.Put(FirstBytes(4), kTensorTimeout));
    const std::size_t before = fake_.count("Renew");
    EXPECT_TRUE(Await([&] { return fake_.count("Renew") >= before + 2; }));
    EXPECT_LT(fake_.count("Renew"), 20u);
    EXPECT_THAT(fake_.tensors(), SizeIs(100));
    // Handles that go together are dropped together.
    tensors.erase(tensors.begin() + 50, tensors.end());
    EXPECT_TRUE(Await([&] { return fake_.tensors().size() == 50; }));
    EXPECT_LE(fake_.count("Drop"), 3u);
  }
  client.Close();
  EXPECT_THAT(fake_.tensors(), IsEmpty());
  EXPECT_LE(fake_.count("Drop"), 6u);
}

TEST_F(TensorClientTest, DropsAgainWhatABusyServerRefused) {
  fake_.refused_drops = 2;
  {
    Client client(target_, {});
    const Tensor tensor = *client.Put(FirstBytes(4), kTensorTimeout);
    { const Tensor other = *client.Put(FirstBytes(4), kTensorTimeout); }
    EXPECT_TRUE(Await([&] { return fake_.tensors().size() == 1; }));
    fake_.refused_drops = 1;
  }
  EXPECT_THAT(fake_.tensors(), IsEmpty());
}

TEST_F(TensorClientTest, ARenewalThatIsLostDoesNotLoseTheTensor) {
  Client client(target_, {});
  const Tensor tensor = *client.Put(FirstBytes(4), kTensorTimeout);
  fake_.renew_status = grpc::Status(grpc::StatusCode::UNAVAILABLE, "lost");
  EXPECT_FALSE(client.Renew(tensor.id(), absl::Milliseconds(200), kTensorTimeout).ok());
  fake_.renew_status = grpc::Status::OK;
  // The lease may be of the shorter length now.
  EXPECT_TRUE(Await([&] { return fake_.count("Renew") >= 2; }));
}

TEST_F(TensorClientTest, RenewsAtTheLengthThatWasAskedFor) {
  Client client(target_, {});
  const Tensor tensor = *client.Put(FirstBytes(4), kTensorTimeout);
  ASSERT_TRUE(client.Renew(tensor.id(), absl::Milliseconds(200), kTensorTimeout).ok());
  EXPECT_TRUE(Await([&] { return fake_.count("Renew") >= 3; }));
}

TEST_F(TensorClientTest, AServerThatTakesOneIdIsAskedForEach) {
  fake_.takes_many = false;
  fake_.ttl_seconds = 0.8;
  {
    Client client(target_, {});
    std::vector<Tensor> tensors;
    for (int i = 0; i < 10; ++i) tensors.push_back(*client.Put(FirstBytes(4), kTensorTimeout));
    EXPECT_TRUE(Await([&] { return fake_.count("Renew") >= 21; }));
    tensors.erase(tensors.begin() + 5, tensors.end());
    EXPECT_TRUE(Await([&] { return fake_.tensors().size() == 5; }));
  }
  EXPECT_THAT(fake_.tensors(), IsEmpty());
}

TEST_F(TensorClientTest, ListsAllPages) {
  Client client(target_, {});
  EXPECT_THAT(*client.ListTensors(kTensorTimeout), IsEmpty());
  const auto a = client.Put(FirstBytes(4), kTensorTimeout), b = client.Put(FirstBytes(8), kTensorTimeout);
  const absl::StatusOr<std::vector<TensorInfo>> tensors = client.ListTensors(kTensorTimeout);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_THAT(*tensors, SizeIs(2));
  EXPECT_EQ((*tensors)[0].id, a->id());
  EXPECT_EQ((*tensors)[1].bytes, 8u);
  EXPECT_TRUE(client.Drop(a->id(), kTensorTimeout).ok());
  EXPECT_TRUE(absl::IsNotFound(client.Drop(a->id(), kTensorTimeout)));
  EXPECT_TRUE(absl::IsNotFound(client.Get(a->id(), kTensorTimeout).status()));
}

TEST_F(TensorClientTest, RefusesWhatCannotBePut) {
  Client client(target_, {});
  EXPECT_TRUE(absl::IsInvalidArgument(client.Put(FirstBytes(-4), kTensorTimeout).status()));
  for (const int channels : {-1, 65}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(client.Put(FirstBytes(4), kTensorTimeout, {.channels = channels}).status()));
  }
  EXPECT_EQ(fake_.count("Create"), 0u);
}

TEST(ShortIdTest, ShowsTheEnd) {
  EXPECT_EQ(ShortId("0badcafe-0123456789abcdef"), "...89abcdef");
  EXPECT_EQ(ShortId("abc"), "...abc");
}

}  // namespace
}  // namespace warpline::client
