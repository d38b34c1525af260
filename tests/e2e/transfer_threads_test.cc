// Several threads that move the bytes of transfers: what their number must not change.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/daemon.h"
#include "tests/e2e/requests.h"
#include "tests/e2e/tensors.h"

namespace warpline {
namespace {

// Takes the first chunk of the tensor and cancels the rest.
void GetAndCancel(Tensors& tensors, const std::string& id) {
  grpc::ClientContext context;
  v1::GetRequest request;
  request.set_id(id);
  const auto reader = tensors.stub().Get(&context, request);
  v1::GetResponse response;
  EXPECT_TRUE(reader->Read(&response));
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

// Sends the first of many chunks and cancels.
void PutAndCancel(Tensors& tensors, const std::string& id) {
  grpc::ClientContext context;
  v1::PutResponse response;
  const auto writer = tensors.stub().Put(&context, &response);
  v1::PutRequest request;
  request.set_id(id);
  request.set_data(std::string(kMiB, 'x'));
  EXPECT_TRUE(writer->Write(request));
  context.TryCancel();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST(TransferThreadsTest, EachTransferKeepsItsOrderWhileOthersComeAndGo) {
  Daemon daemon({"--cpus=10"});
  constexpr std::size_t kBytes = 9 * kMiB + 5;
  constexpr int kClients = 8, kRounds = 3;
  std::atomic<bool> stopped = false;
  std::atomic<int> small = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      Tensors tensors(daemon.Channel());
      for (int round = 0; round < kRounds; ++round) {
        const std::string data = Pattern(kBytes, static_cast<std::size_t>(client * kRounds + round));
        const std::string id = tensors.Create(v1::DATA_TYPE_U8, {kBytes}).response.tensor().resident().id();
        PutAndCancel(tensors, id);
        // The server may not have heard of the end yet, and then the bytes are still taken.
        Answer<v1::PutResponse> put;
        do {
          put = tensors.Put(id, 0, data);
        } while (put.status.error_code() == grpc::StatusCode::ABORTED);
        EXPECT_TRUE(put.status.ok()) << put.status.error_message();
        GetAndCancel(tensors, id);
        const Tensors::Got got = tensors.Get(id);
        EXPECT_TRUE(got.status.ok()) << got.status.error_message();
        EXPECT_TRUE(got.in_order);
        EXPECT_TRUE(got.data == data) << "client " << client << ", round " << round;
        EXPECT_TRUE(tensors.Drop(id).status.ok());
      }
    });
  }
  std::thread others([&] {
    const auto stub = v1::KernelService::NewStub(daemon.Channel());
    while (!stopped) {
      grpc::ClientContext context;
      SetTimeout(context, absl::Seconds(60));
      v1::TransposeResponse response;
      const grpc::Status status = stub->Transpose(&context, IotaTranspose(2, 3), &response);
      EXPECT_TRUE(status.ok()) << status.error_message();
      small += F32Values(response.y()) == std::vector<float>{0, 3, 1, 4, 2, 5};
    }
  });
  for (std::thread& client : clients) client.join();
  stopped = true;
  others.join();
  EXPECT_GT(small, 0);
  EXPECT_TRUE(daemon.AwaitMetric("warpline_admission_bytes", "state=\"used\"", 0));
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait(), 0);
}

}  // namespace
}  // namespace warpline
