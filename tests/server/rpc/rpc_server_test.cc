#include "server/rpc/rpc_server.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "server/base/mutex.h"
#include "server/rpc/unary_call.h"
#include "tests/testing/bound.h"

namespace warpline {
namespace {

// A server whose calls are answered when a test says so, and that tells which threads have received them.
class RpcServerTest : public ::testing::Test {
 protected:
  RpcServerTest() {
    const auto hold = [this](UnaryCall& call) {
      MutexLock lock(&mutex_);
      held_.push_back(&call);
      threads_.insert(std::this_thread::get_id());
    };
    server_ = *RpcServer::Start({.listen = Bound({"127.0.0.1:0"}),
                                 .threads = 3,
                                 .look = absl::Microseconds(100),
                                 .max_message_bytes = 1 << 20,
                                 .memory_quota_bytes = 64 << 20,
                                 .max_streams_per_connection = 1000,
                                 .echo = true},
                                {hold, hold, hold, hold, hold, hold}, inflater_, metrics_);
    channel_ = grpc::CreateChannel(server_->addresses().front(), grpc::InsecureChannelCredentials());
  }

  // Makes so many calls, answers them once all are there, and returns the threads that received them.
  std::set<std::thread::id> ThreadsOf(std::size_t calls) {
    struct Call {
      grpc::ClientContext context;
      std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
      grpc::ByteBuffer response;
      grpc::Status status;
    };
    const grpc::Slice slice("x");
    const grpc::ByteBuffer message(&slice, 1);
    grpc::GenericStub stub(channel_);
    grpc::CompletionQueue queue;
    std::vector<std::unique_ptr<Call>> all;
    for (std::size_t i = 0; i < calls; ++i) {
      Call& call = *all.emplace_back(std::make_unique<Call>());
      call.reader = stub.PrepareUnaryCall(&call.context, "/warpline.v1.EchoService/Echo", message, &queue);
      call.reader->StartCall();
      call.reader->Finish(&call.response, &call.status, &call);
    }
    std::vector<UnaryCall*> held;
    std::set<std::thread::id> threads;
    {
      MutexLock lock(&mutex_);
      const auto all_there = [&] { return held_.size() == calls; };
      EXPECT_TRUE(mutex_.AwaitUntil(all_there, After(absl::Minutes(1))));
      held = std::exchange(held_, {});
      threads = std::exchange(threads_, {});
    }
    for (UnaryCall* call : held) call->Respond(message);
    for (std::size_t i = 0; i < calls; ++i) {
      void* tag = nullptr;
      bool ok = false;
      queue.Next(&tag, &ok);
      EXPECT_TRUE(static_cast<Call*>(tag)->status.ok());
    }
    queue.Shutdown();
    return threads;
  }

  Metrics metrics_;
  Admission admission_{{.max_jobs = 1, .max_bytes = 1}, metrics_};
  FairWorkers workers_{1};
  Inflater inflater_{admission_, workers_};
  Mutex mutex_;
  std::vector<UnaryCall*> held_ ABSL_GUARDED_BY(mutex_);
  std::set<std::thread::id> threads_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

// Beside the three, the relief receives for one of them that a busy machine holds up.
TEST_F(RpcServerTest, FurtherThreadsReceiveOnlyWhileManyCallsAreInProgress) {
  const std::set<std::thread::id> first = ThreadsOf(1);
  EXPECT_EQ(first.size(), 1u);
  EXPECT_GE(ThreadsOf(400).size(), 3u);
  // Calls that were made ready under load are taken first.
  for (int i = 0; i < 100; ++i) ThreadsOf(1);
  std::set<std::thread::id> unhurried = first;
  for (int i = 0; i < 20; ++i) unhurried.merge(ThreadsOf(1));
  EXPECT_LE(unhurried.size(), 2u);
}

}  // namespace
}  // namespace warpline
