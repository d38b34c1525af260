// The baseline for the server's streams in resident_bench: TensorService without tensors. Put throws away
// what it receives. Get sends random bytes of its own, with nothing between gRPC and the client.
//
//   stream_server [ADDRESS]     prints "READY grpc=ADDRESS"; 127.0.0.1:50099 by default
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "proto/wire/tensor_field.h"
#include "tests/bench/random_bytes.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr std::size_t kRotation = 64 * kChunkBytes;

grpc::ByteBuffer ToBuffer(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

template <typename Message>
Message Parsed(const grpc::ByteBuffer& buffer) {
  Message message;
  grpc::Slice slice;
  if (buffer.DumpToSingleSlice(&slice).ok()) {
    static_cast<void>(message.ParseFromArray(slice.begin(), static_cast<int>(slice.size())));
  }
  return message;
}

// Reads all messages and answers once.
class Sink final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Sink(const google::protobuf::MessageLite& answer) : answer_(ToBuffer(answer)) {
    StartRead(&message_);
  }
  void OnReadDone(bool ok) override {
    message_.Clear();
    if (ok) return StartRead(&message_);
    StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_, answer_;
};

// Sends as many bytes as it is asked for.
class Source final : public grpc::ServerGenericBidiReactor {
 public:
  Source() { StartRead(&message_); }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    left_ = static_cast<std::size_t>(Parsed<v1::GetRequest>(message_).length());
    Send();
  }
  void OnWriteDone(bool ok) override {
    if (ok && left_ > 0) return Send();
    Finish(grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  void Send() {
    // Larger than the cache of a core, as tensors are.
    const std::string& data = RandomBytes(kRotation + kChunkBytes);
    const std::size_t bytes = std::min(left_, kChunkBytes);
    std::string head;
    AppendFieldHead(head, v1::GetResponse::kDataFieldNumber, bytes);
    const grpc::Slice slices[] = {
        grpc::Slice(head), grpc::Slice(data.data() + left_ % kRotation, bytes, grpc::Slice::STATIC_SLICE)};
    response_ = grpc::ByteBuffer(slices, 2);
    left_ -= bytes;
    StartWrite(&response_);
  }
  grpc::ByteBuffer message_, response_;
  std::size_t left_ = 0;
};

class Service final : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    const std::string& method = context->method();
    if (method.ends_with("/Get")) return new Source();
    v1::CreateResponse created;
    created.mutable_tensor()->mutable_resident()->set_id("none");
    if (method.ends_with("/Create")) return new Sink(created);
    return new Sink(v1::PutResponse());
  }
};

int Main(int argc, char** argv) {
  const std::string address = argc > 1 ? argv[1] : "127.0.0.1:50099";
  Service service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::printf("READY grpc=%s\n", address.c_str());
  std::fflush(stdout);
  server->Wait();
  return 0;
}

}  // namespace
}  // namespace warpline

int main(int argc, char** argv) { return warpline::Main(argc, argv); }
