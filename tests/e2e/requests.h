// Requests as any client with generated code would make them, and raw ones that no such client would.
#ifndef WARPLINE_TESTS_E2E_REQUESTS_H_
#define WARPLINE_TESTS_E2E_REQUESTS_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "warpline/v1/warpline.grpc.pb.h"

namespace warpline {

inline v1::Tensor F32Tensor(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  v1::Tensor tensor;
  tensor.set_data_type(v1::DATA_TYPE_F32);
  for (std::int64_t size : shape) tensor.add_shape(size);
  tensor.set_inline_(
      std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
  return tensor;
}

inline std::vector<float> F32Values(const v1::Tensor& tensor) {
  std::vector<float> values(tensor.inline_().size() / sizeof(float));
  std::memcpy(values.data(), tensor.inline_().data(), tensor.inline_().size());
  return values;
}

// rows x cols with element i equal to i.
inline v1::TransposeRequest IotaTranspose(std::int64_t rows, std::int64_t cols) {
  std::vector<float> values(static_cast<std::size_t>(rows * cols));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  v1::TransposeRequest request;
  *request.mutable_x() = F32Tensor({rows, cols}, values);
  return request;
}

// Keep a lane busy for about a second: on the CPU by n^3 steps of the plainest loop, on a GPU by adding up
// all elements with one thread.
inline v1::GemmRequest SlowGemm() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr std::int64_t n = 700;  // the daemon has the sanitizer too, and takes four times as long a step
#else
  constexpr std::int64_t n = 1100;
#endif
  const std::vector<float> ones(static_cast<std::size_t>(n * n), 1.0f);
  v1::GemmRequest request;
  *request.mutable_a() = F32Tensor({n, n}, ones);
  *request.mutable_b() = F32Tensor({n, n}, ones);
  request.set_variant("reference");
  return request;
}
inline v1::ReduceRequest SlowReduce() {
  constexpr std::int64_t n = 16 << 20;
  v1::ReduceRequest request;
  *request.mutable_x() = F32Tensor({n}, std::vector<float>(static_cast<std::size_t>(n), 1.0f));
  request.set_op(v1::REDUCE_OP_SUM);
  request.set_variant("naive");
  return request;
}

inline void SetTimeout(grpc::ClientContext& context, absl::Duration timeout) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
}

// The typed details of a failed call.
struct ErrorDetails {
  std::vector<std::string> fields;
  bool has_retry_info = false;
  std::string request_id;
};
inline ErrorDetails DetailsOf(const grpc::Status& status) {
  ErrorDetails details;
  google::rpc::Status proto;
  if (!proto.ParseFromString(status.error_details())) return details;
  for (const auto& any : proto.details()) {
    google::rpc::BadRequest bad;
    google::rpc::RequestInfo info;
    if (any.UnpackTo(&bad)) {
      for (const auto& violation : bad.field_violations()) details.fields.push_back(violation.field());
    } else if (any.UnpackTo(&info)) {
      details.request_id = info.request_id();
    } else if (any.Is<google::rpc::RetryInfo>()) {
      details.has_retry_info = true;
    }
  }
  return details;
}

inline constexpr char kTransposeMethod[] = "/warpline.v1.KernelService/Transpose";

// One unary call with these bytes as its message.
inline grpc::Status RawCall(const std::shared_ptr<grpc::Channel>& channel, const grpc::ByteBuffer& request,
                            absl::Duration timeout = absl::Seconds(60),
                            const std::string& method = kTransposeMethod,
                            grpc_compression_algorithm compression = GRPC_COMPRESS_NONE) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  context.set_compression_algorithm(compression);
  grpc::CompletionQueue queue;
  grpc::ByteBuffer response;
  grpc::Status status;
  auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

inline grpc::ByteBuffer Bytes(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

// A streaming call, written and read message by message; cancelled at its end.
class StreamCall {
 public:
  StreamCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method) : stub_(channel) {
    SetTimeout(context_, absl::Seconds(60));
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(nullptr);
    Next();
  }
  ~StreamCall() {
    context_.TryCancel();
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Next();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  // Writes the message. Returns whether gRPC took it.
  bool Write(const std::string& message) {
    call_->Write(Bytes(message), nullptr);
    return Next();
  }
  bool WriteLast(const std::string& message) {
    call_->WriteLast(Bytes(message), grpc::WriteOptions(), nullptr);
    return Next();
  }
  // Empty at the end of the stream.
  std::string Read() {
    grpc::ByteBuffer buffer;
    call_->Read(&buffer, nullptr);
    grpc::Slice slice;
    if (!Next() || !buffer.DumpToSingleSlice(&slice).ok()) return "";
    return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

// A client that sends its request and never reads the answer.
class StalledReader {
 public:
  StalledReader(const std::shared_ptr<grpc::Channel>& channel, const std::string& request)
      : call_(channel, kTransposeMethod) {
    call_.WriteLast(request);
  }

 private:
  StreamCall call_;
};

}  // namespace warpline

#endif  // WARPLINE_TESTS_E2E_REQUESTS_H_
