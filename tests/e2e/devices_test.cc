// Tensors on the devices of a node with several GPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "server/base/mutex.h"
#include "tests/e2e/tensors.h"

namespace warpline {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kSide = 64;
constexpr std::size_t kBytes = kSide * kSide * sizeof(float);

class DevicesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto info = v1::InfoService::NewStub(daemon_.Channel());
    const auto answer =
        CallStub<v1::GetInfoResponse>(*info, &v1::InfoService::Stub::GetInfo, v1::GetInfoRequest());
    devices_ = answer.response.devices_size();
    if (devices_ < 2) GTEST_SKIP() << "this server has " << devices_ << " device";
  }

  // A matrix of this number on a device, or where the server likes; -1: the latter.
  v1::TensorInfo Filled(float value, int device = -1) {
    v1::CreateRequest request;
    request.set_data_type(v1::DATA_TYPE_F32);
    request.add_shape(kSide);
    request.add_shape(kSide);
    if (device >= 0) request.set_device(device);
    const auto created =
        CallStub<v1::CreateResponse>(tensors_.stub(), &v1::TensorService::Stub::Create, request);
    EXPECT_TRUE(created.status.ok()) << created.status.error_message();
    const std::vector<float> values(kSide * kSide, value);
    const std::string_view data(reinterpret_cast<const char*>(values.data()), kBytes);
    EXPECT_TRUE(tensors_.Put(created.response.tensor().resident().id(), 0, data).status.ok());
    return created.response.tensor();
  }
  Answer<v1::GemmResponse> Multiply(const v1::TensorInfo& a, const v1::TensorInfo& b,
                                    std::optional<double> kept_seconds = std::nullopt) {
    v1::GemmRequest request;
    *request.mutable_a()->mutable_resident() = a.resident();
    *request.mutable_b()->mutable_resident() = b.resident();
    if (kept_seconds.has_value()) {
      request.mutable_options()->add_sinks()->mutable_resident()->set_ttl_seconds(*kept_seconds);
    }
    return CallStub<v1::GemmResponse>(*kernels_, &v1::KernelService::Stub::Gemm, request);
  }

  // Each device has the same room.
  Daemon daemon_{{"--resident-bytes=256M"}};
  Tensors tensors_{daemon_.Channel()};
  std::unique_ptr<v1::KernelService::Stub> kernels_ = v1::KernelService::NewStub(daemon_.Channel());
  int devices_ = 0;
};

TEST_F(DevicesTest, OperandsOnDifferentDevicesAreMultipliedAndTheCopyStays) {
  const v1::TensorInfo a = Filled(2, 0), b = Filled(3, 1);
  // More often than a lane needs to make a graph of the launch.
  for (int i = 0; i < 40; ++i) {
    const auto answer = Multiply(a, b);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    EXPECT_THAT(F32Values(answer.response.d()), Each(2 * 3 * kSide));
    EXPECT_EQ(answer.response.execution().device(), 0);
    EXPECT_EQ(answer.response.execution().peer_bytes(), i == 0 ? kBytes : 0);
  }
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_peer_copy_bytes_total", "", kBytes));
}

TEST_F(DevicesTest, ReplicasAreShownAndEndWithTheirTensor) {
  const v1::TensorInfo a = Filled(2, 0), b = Filled(3, 1);
  ASSERT_TRUE(Multiply(a, b).status.ok());
  std::map<std::string, std::vector<int>> replicas;
  const auto listed = tensors_.List();
  for (const v1::TensorInfo& tensor : listed.response.tensors()) {
    replicas[tensor.resident().id()].assign(tensor.replicas().begin(), tensor.replicas().end());
  }
  EXPECT_THAT(replicas[a.resident().id()], IsEmpty());
  EXPECT_THAT(replicas[b.resident().id()], ElementsAre(0));
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_device_memory_bytes", "device=\"0\",state=\"replicas\"", kBytes));
  ASSERT_TRUE(tensors_.Drop(b.resident().id()).status.ok());
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_device_memory_bytes", "device=\"0\",state=\"replicas\"", 0));
}

TEST_F(DevicesTest, ReplicasTakeNoRoomFromTensors) {
  const v1::TensorInfo a = Filled(2, 0);
  std::vector<v1::TensorInfo> others;
  std::int64_t copied = 0;
  for (int i = 0; i < 50; ++i) {
    others.push_back(Filled(3, 1));
    const auto answer = Multiply(a, others.back());
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    copied += answer.response.execution().peer_bytes();
  }
  // A device that is about to end a job may count as busy: then the next one runs on the other.
  EXPECT_GT(copied, 0);
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_device_memory_bytes", "state=\"replicas\"", 1.0 * copied));
  // All that --resident-bytes promises, but for `a`.
  v1::CreateRequest request;
  request.set_data_type(v1::DATA_TYPE_U8);
  request.add_shape((std::int64_t{256} << 20) - static_cast<std::int64_t>(kBytes));
  request.set_device(0);
  const auto created =
      CallStub<v1::CreateResponse>(tensors_.stub(), &v1::TensorService::Stub::Create, request);
  EXPECT_TRUE(created.status.ok()) << created.status.error_message();
}

TEST_F(DevicesTest, ATensorThatManyReadIsServedByAllDevices) {
  // A product with one column of it takes less time than copying it, so it must wait for several.
  constexpr std::int64_t kRows = 4096;
  v1::CreateRequest request;
  request.set_data_type(v1::DATA_TYPE_F32);
  request.add_shape(kRows);
  request.add_shape(kRows);
  request.set_device(1);
  const auto created =
      CallStub<v1::CreateResponse>(tensors_.stub(), &v1::TensorService::Stub::Create, request);
  ASSERT_TRUE(created.status.ok()) << created.status.error_message();
  const v1::ResidentTensor hot = created.response.tensor().resident();
  const std::vector<float> ones(kRows * kRows, 1);
  ASSERT_TRUE(
      tensors_.Put(hot.id(), 0, {reinterpret_cast<const char*>(ones.data()), ones.size() * sizeof(float)})
          .status.ok());
  Mutex mutex;
  std::set<int> devices;
  std::vector<std::thread> clients;
  for (int i = 0; i < 32; ++i) {
    clients.emplace_back([&] {
      const auto stub = v1::KernelService::NewStub(daemon_.Channel());
      v1::GemmRequest product;
      *product.mutable_a()->mutable_resident() = hot;
      v1::Tensor& b = *product.mutable_b();
      b.set_data_type(v1::DATA_TYPE_F32);
      b.add_shape(kRows);
      b.add_shape(16);
      b.set_inline_(ones.data(), kRows * 16 * sizeof(float));
      for (int k = 0; k < 20; ++k) {
        const auto answer = CallStub<v1::GemmResponse>(*stub, &v1::KernelService::Stub::Gemm, product);
        ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
        EXPECT_THAT(F32Values(answer.response.d()), Each(kRows));
        MutexLock lock(&mutex);
        devices.insert(answer.response.execution().device());
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(devices.size(), static_cast<std::size_t>(devices_));
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_peer_copy_bytes_total", "",
                                  (devices_ - 1) * ones.size() * sizeof(float)));
}

TEST_F(DevicesTest, AnOperandThatIsUsedTwiceIsCopiedOnce) {
  const v1::TensorInfo a = Filled(2, 1), large = Filled(1, 0);
  v1::RunRequest request;
  for (const auto& [name, tensor] :
       {std::pair("a", &a), std::pair("b", &a), std::pair("c", &large), std::pair("d", &large)}) {
    v1::NamedTensor& input = *request.add_inputs();
    input.set_name(name);
    *input.mutable_tensor()->mutable_resident() = tensor->resident();
  }
  v1::Step& sum = *request.mutable_program()->add_steps();
  sum.set_name("sum");
  for (const char* name : {"a", "b", "c", "d"}) sum.add_inputs(name);
  for (const auto& [x, y] : {std::pair(0, 1), std::pair(4, 2), std::pair(5, 3)}) {
    v1::MapNode& node = *sum.mutable_map()->add_nodes();
    node.set_op(v1::MAP_OP_ADD);
    node.add_operands(x);
    node.add_operands(y);
  }
  request.mutable_program()->add_outputs("sum");
  const auto answer = CallStub<v1::RunResponse>(*kernels_, &v1::KernelService::Stub::Run, request);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_THAT(F32Values(answer.response.outputs(0).tensor()), Each(6));
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_peer_copy_bytes_total", "", kBytes));
}

TEST_F(DevicesTest, ARequestRunsWhereMostOfItsBytesLie) {
  for (const int most : {0, 1}) {
    const v1::TensorInfo a = Filled(1, most), b = Filled(1, most), c = Filled(1, 1 - most);
    v1::GemmRequest request;
    *request.mutable_a()->mutable_resident() = a.resident();
    *request.mutable_b()->mutable_resident() = b.resident();
    *request.mutable_c()->mutable_resident() = c.resident();
    request.set_beta(1);
    const auto answer = CallStub<v1::GemmResponse>(*kernels_, &v1::KernelService::Stub::Gemm, request);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    EXPECT_EQ(answer.response.execution().device(), most);
    EXPECT_THAT(F32Values(answer.response.d()), Each(kSide + 1));
  }
}

TEST_F(DevicesTest, TensorsAndResultsOfOneClientLieTogether) {
  std::set<int> devices;
  std::vector<v1::TensorInfo> made;
  for (int i = 0; i < 4; ++i) made.push_back(Filled(1));
  for (const v1::TensorInfo& tensor : made) devices.insert(tensor.device());
  EXPECT_EQ(devices.size(), 1u);
  const auto answer = Multiply(made[0], made[1], 60);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.response.execution().device(), *devices.begin());
  EXPECT_EQ(answer.response.execution().peer_bytes(), 0);
  // Another client goes to another device, where there is more room.
  Tensors other(daemon_.Channel());
  const auto created = other.Create(v1::DATA_TYPE_F32, {kSide, kSide});
  EXPECT_NE(created.response.tensor().device(), *devices.begin());
}

}  // namespace
}  // namespace warpline
