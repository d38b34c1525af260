// The gRPC server models beside which warplined is measured, as raw echo servers for `warpline bench --op
// echo`: each is what a user of gRPC would write, and nothing else is registered in the process.
//
//   async     raw unary method on a completion queue with one thread: the rival of `warplined --echo`
//   generic   the same with calls that are accepted at their headers and then read, for any method
//   callback  raw unary method of the callback API
//   sync      parsed messages; the synchronous API has no raw methods
//
// Usage: echo_server MODEL ADDRESS, where ADDRESS is host:port or unix:/path. Prints READY, serves until it
// is killed.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/synchronization/mutex.h"
#include "warpline/v1/warpline.grpc.pb.h"

namespace warpline {
namespace {

// Calls that wait to be accepted. More than the load generator has in flight.
constexpr int kReadyCalls = 128;

// The type of the tags that the completion queues return.
class Call {
 public:
  virtual ~Call() = default;
  // The next event of this call, which deletes itself at its end.
  virtual void Proceed(bool ok) = 0;
};

using AsyncService = v1::EchoService::WithRawMethod_Echo<v1::EchoService::Service>;

class AsyncCall final : public Call {
 public:
  AsyncCall(AsyncService& service, grpc::ServerCompletionQueue& queue) : service_(service), queue_(queue) {
    service_.RequestEcho(&context_, &message_, &writer_, &queue_, &queue_, this);
  }
  void Proceed(bool ok) override {
    if (!ok || finishing_) {
      delete this;
      return;
    }
    new AsyncCall(service_, queue_);
    finishing_ = true;
    writer_.Finish(message_, grpc::Status::OK, this);
  }

 private:
  AsyncService& service_;
  grpc::ServerCompletionQueue& queue_;
  grpc::ServerContext context_;
  grpc::ByteBuffer message_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&context_};
  bool finishing_ = false;
};

class GenericCall final : public Call {
 public:
  GenericCall(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue)
      : service_(service), queue_(queue) {
    service_.RequestCall(&context_, &stream_, &queue_, &queue_, this);
  }
  void Proceed(bool ok) override {
    if (!ok || state_ == State::kFinishing) {
      delete this;
    } else if (state_ == State::kWaiting) {
      new GenericCall(service_, queue_);
      state_ = State::kReading;
      stream_.Read(&message_, this);
    } else {
      state_ = State::kFinishing;
      stream_.WriteAndFinish(message_, grpc::WriteOptions(), grpc::Status::OK, this);
    }
  }

 private:
  enum class State { kWaiting, kReading, kFinishing };
  grpc::AsyncGenericService& service_;
  grpc::ServerCompletionQueue& queue_;
  grpc::GenericServerContext context_;
  grpc::ByteBuffer message_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  State state_ = State::kWaiting;
};

class CallbackEcho : public v1::EchoService::WithRawCallbackMethod_Echo<v1::EchoService::Service> {
  grpc::ServerUnaryReactor* Echo(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override {
    *response = *request;
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

class SyncEcho : public v1::EchoService::Service {
  grpc::Status Echo(grpc::ServerContext*, const v1::EchoRequest* request,
                    v1::EchoResponse* response) override {
    response->set_payload(request->payload());
    return grpc::Status::OK;
  }
};

int Usage() {
  std::fprintf(stderr, "usage: echo_server async|generic|callback|sync ADDRESS\n");
  return 2;
}

int Main(int argc, char** argv) {
  // Switches deadlock detection off as warplined does. The server models are compared, not the distribution's
  // debug checks.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  if (argc != 3) return Usage();
  const std::string_view model = argv[1];
  AsyncService async;
  grpc::AsyncGenericService generic;
  CallbackEcho callback;
  SyncEcho sync;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  std::function<void()> accept_one;

  grpc::ServerBuilder builder;
  builder.AddListeningPort(argv[2], grpc::InsecureServerCredentials());
  builder.SetMaxReceiveMessageSize(-1);
  if (model == "async") {
    builder.RegisterService(&async);
    queue = builder.AddCompletionQueue();
    accept_one = [&] { new AsyncCall(async, *queue); };
  } else if (model == "generic") {
    builder.RegisterAsyncGenericService(&generic);
    queue = builder.AddCompletionQueue();
    accept_one = [&] { new GenericCall(generic, *queue); };
  } else if (model == "callback") {
    builder.RegisterService(&callback);
  } else if (model == "sync") {
    builder.RegisterService(&sync);
  } else {
    return Usage();
  }
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  if (accept_one != nullptr) {
    for (int i = 0; i < kReadyCalls; ++i) accept_one();
  }
  std::puts("READY");
  std::fflush(stdout);
  if (queue == nullptr) {
    server->Wait();
    return 0;
  }
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) static_cast<Call*>(tag)->Proceed(ok);
  return 0;
}

}  // namespace
}  // namespace warpline

int main(int argc, char** argv) { return warpline::Main(argc, argv); }
