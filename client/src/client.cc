#include "warpline/client.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "client/src/attempts.h"
#include "client/src/codec.h"
#include "client/src/connection.h"
#include "client/src/message_writer.h"
#include "client/src/methods.h"
#include "client/src/tensor_client.h"
#include "google/protobuf/unknown_field_set.h"
#include "kernels/status_macros.h"
#include "proto/wire/tensor_field.h"

namespace warpline::client {
namespace {

absl::StatusOr<std::string> Flatten(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  if (message.Valid() && !message.Dump(&slices).ok()) return absl::InternalError("unreadable response");
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

std::vector<std::string> OutputsOf(const RunArgs& args) {
  return {args.program.outputs().begin(), args.program.outputs().end()};
}

}  // namespace

class Client::Impl {
 public:
  Impl(const std::string& target, const ClientOptions& options)
      : connection_(target, options), tensors_(connection_) {}

  TensorClient& tensors() { return tensors_; }
  absl::StatusOr<grpc::ByteBuffer> Call(const std::string& method,
                                        const std::function<absl::StatusOr<OutgoingMessage>()>& encode,
                                        absl::Duration timeout, const CallOptions& options) {
    RETURN_IF_ERROR(CheckTimeout(timeout));
    return connection_.Call(method, encode, absl::Now() + timeout, options.request_id);
  }
  // One of the operations.
  template <typename Args>
  absl::StatusOr<Result> Compute(const Args& args, absl::Duration timeout, const CallOptions& options);
  template <typename Decode, typename Done>
  void CallAsync(const std::string& method, absl::StatusOr<OutgoingMessage> message, absl::Duration timeout,
                 const CallOptions& options, Decode decode, Done done);

 private:
  Connection connection_;
  TensorClient tensors_;  // before the connection ends, it drops what is left
};

template <typename Args>
absl::StatusOr<Result> Client::Impl::Compute(const Args& args, absl::Duration timeout,
                                             const CallOptions& options) {
  ASSIGN_OR_RETURN(const grpc::ByteBuffer response,
                   Call(
                       MethodOf(args), [&] { return Encode(args, options.destination); }, timeout, options));
  return DecodeResult(response, options.destination, tensors_.make_tensor());
}

template <typename Decode, typename Done>
void Client::Impl::CallAsync(const std::string& method, absl::StatusOr<OutgoingMessage> message,
                             absl::Duration timeout, const CallOptions& options, Decode decode, Done done) {
  if (absl::Status status = CheckTimeout(timeout); !status.ok()) return done(std::move(status));
  if (!message.ok()) return done(message.status());
  connection_.channel().CallAsync(
      method, *std::move(message), absl::Now() + timeout, options.request_id,
      [decode = std::move(decode), done = std::move(done)](const absl::StatusOr<grpc::ByteBuffer>& response) {
        if (!response.ok()) return done(response.status());
        done(decode(*response));
      });
}

Client::Client(const std::string& target, const ClientOptions& options)
    : impl_(std::make_unique<Impl>(target, options)) {}
Client::~Client() = default;

absl::StatusOr<Result> Client::Transpose(const TransposeArgs& args, absl::Duration timeout,
                                         const CallOptions& options) {
  return impl_->Compute(args, timeout, options);
}

absl::StatusOr<Result> Client::Gemm(const GemmArgs& args, absl::Duration timeout,
                                    const CallOptions& options) {
  return impl_->Compute(args, timeout, options);
}

absl::StatusOr<Result> Client::Reduce(const ReduceArgs& args, absl::Duration timeout,
                                      const CallOptions& options) {
  return impl_->Compute(args, timeout, options);
}

absl::StatusOr<RunResult> Client::Run(const RunArgs& args, absl::Duration timeout,
                                      const CallOptions& options) {
  ASSIGN_OR_RETURN(const grpc::ByteBuffer response,
                   impl_->Call(
                       RunMethod(), [&] { return Encode(args); }, timeout, options));
  return DecodeRunResult(response, OutputsOf(args), args.destinations, impl_->tensors().make_tensor());
}

absl::StatusOr<Tensor> Client::Put(const ConstArray& array, absl::Duration timeout,
                                   const PutOptions& options) {
  return impl_->tensors().Put(array, timeout, options);
}

absl::StatusOr<Array> Client::Get(const Tensor& tensor, absl::Duration timeout, const GetOptions& options) {
  return impl_->tensors().Get(tensor.info(), timeout, options);
}

absl::StatusOr<Array> Client::Get(const std::string& id, absl::Duration timeout, const GetOptions& options) {
  return impl_->tensors().Get(id, timeout, options);
}

absl::Status Client::Drop(const std::string& id, absl::Duration timeout) {
  return impl_->tensors().Drop(id, timeout);
}

absl::StatusOr<TensorInfo> Client::Renew(const std::string& id, std::optional<absl::Duration> ttl,
                                         absl::Duration timeout) {
  return impl_->tensors().Renew(id, ttl, timeout);
}

absl::StatusOr<Tensor> Client::Attach(const std::string& id, absl::Duration timeout,
                                      const AttachOptions& options) {
  return impl_->tensors().Attach(id, timeout, options);
}

absl::StatusOr<std::vector<TensorInfo>> Client::ListTensors(absl::Duration timeout) {
  return impl_->tensors().List(timeout);
}

absl::StatusOr<v1::GetInfoResponse> Client::GetInfo(absl::Duration timeout) {
  ASSIGN_OR_RETURN(const grpc::ByteBuffer response,
                   impl_->Call(GetInfoMethod(), [] { return MessageWriter().Finish(); }, timeout, {}));
  ASSIGN_OR_RETURN(const std::string bytes, Flatten(response));
  v1::GetInfoResponse info;
  if (!info.ParseFromString(bytes)) return absl::InternalError("the server's GetInfoResponse is not valid");
  return info;
}

absl::StatusOr<bool> Client::IsServing(const std::string& service, absl::Duration timeout) {
  // The generated types of these messages are not linked: a program that has its own copy of them could not
  // link this library.
  constexpr int kService = 1;            // of HealthCheckRequest
  constexpr int kStatus = 1;             // of HealthCheckResponse
  constexpr std::uint64_t kServing = 1;  // a ServingStatus
  const auto encode = [&] {
    std::string request;
    AppendFieldHead(request, kService, service.size());
    MessageWriter message;
    message.Append(request + service);
    return std::move(message).Finish();
  };
  ASSIGN_OR_RETURN(const grpc::ByteBuffer response, impl_->Call(HealthMethod(), encode, timeout, {}));
  ASSIGN_OR_RETURN(const std::string bytes, Flatten(response));
  google::protobuf::UnknownFieldSet fields;
  if (!fields.ParseFromString(bytes)) {
    return absl::InternalError("the server's HealthCheckResponse is not valid");
  }
  std::uint64_t status = 0;
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    const bool is_status =
        field.number() == kStatus && field.type() == google::protobuf::UnknownField::TYPE_VARINT;
    if (is_status) status = field.varint();
  }
  return status == kServing;
}

void Client::CallAsync(const OperationArgs& args, absl::Duration timeout, const CallOptions& options,
                       std::function<void(absl::StatusOr<Result>)> done) {
  const auto decode = [destination = options.destination,
                       make_tensor = impl_->tensors().make_tensor()](const grpc::ByteBuffer& response) {
    return DecodeResult(response, destination, make_tensor);
  };
  const auto encode = [&](const auto& operation) { return Encode(operation, options.destination); };
  impl_->CallAsync(MethodOf(args), std::visit(encode, args), timeout, options, decode, std::move(done));
}

void Client::RunAsync(const RunArgs& args, absl::Duration timeout, const CallOptions& options,
                      std::function<void(absl::StatusOr<RunResult>)> done) {
  const auto decode = [outputs = OutputsOf(args), destinations = args.destinations,
                       make_tensor = impl_->tensors().make_tensor()](const grpc::ByteBuffer& response) {
    return DecodeRunResult(response, outputs, destinations, make_tensor);
  };
  impl_->CallAsync(RunMethod(), Encode(args), timeout, options, decode, std::move(done));
}

}  // namespace warpline::client
