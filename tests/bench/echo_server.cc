// The gRPC server models that warplined does not use, as raw echo servers, so that `warpline bench --op echo`
// can measure them beside `warplined --echo` (asynchronous completion queues).
//
// Usage: echo_server callback|sync ADDRESS. Prints READY, serves until it is killed.
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "warpline/v1/warpline.grpc.pb.h"

namespace warpline {
namespace {

class CallbackEcho : public v1::EchoService::WithRawCallbackMethod_Echo<v1::EchoService::Service> {
  grpc::ServerUnaryReactor* Echo(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override {
    *response = *request;
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

// With parsed messages: the synchronous API has no raw methods.
class SyncEcho : public v1::EchoService::Service {
  grpc::Status Echo(grpc::ServerContext*, const v1::EchoRequest* request,
                    v1::EchoResponse* response) override {
    response->set_payload(request->payload());
    return grpc::Status::OK;
  }
};

int Main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: echo_server callback|sync ADDRESS\n");
    return 2;
  }
  std::unique_ptr<grpc::Service> service;
  if (std::strcmp(argv[1], "callback") == 0) {
    service = std::make_unique<CallbackEcho>();
  } else {
    service = std::make_unique<SyncEcho>();
  }
  grpc::ServerBuilder builder;
  builder.AddListeningPort(argv[2], grpc::InsecureServerCredentials());
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(service.get());
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::puts("READY");
  std::fflush(stdout);
  server->Wait();
  return 0;
}

}  // namespace
}  // namespace warpline

int main(int argc, char** argv) { return warpline::Main(argc, argv); }
