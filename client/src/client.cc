#include "warpline/client.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "client/src/arrived.h"
#include "client/src/attempts.h"
#include "client/src/codec.h"
#include "client/src/connection.h"
#include "client/src/message_writer.h"
#include "client/src/methods.h"
#include "client/src/region_call.h"
#include "client/src/region_client.h"
#include "client/src/result_type.h"
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
      : regions_(target, options), connection_(target, options), tensors_(connection_) {}

  void Close() {
    tensors_.Close();
    connection_.Close();
  }
  TensorClient& tensors() { return tensors_; }
  absl::StatusOr<Region> OpenRegion(std::size_t bytes, absl::Duration timeout) {
    return regions_.Open(connection_, bytes, timeout);
  }
  // A call that has nothing to do with regions.
  absl::StatusOr<grpc::ByteBuffer> Call(const std::string& method,
                                        const std::function<absl::StatusOr<OutgoingMessage>()>& encode,
                                        absl::Duration timeout) {
    RETURN_IF_ERROR(CheckTimeout(timeout));
    return connection_.Call(method, encode, absl::Now() + timeout, "");
  }
  absl::StatusOr<Result> Compute(const OperationArgs& args, absl::Duration timeout,
                                 const CallOptions& options);
  absl::StatusOr<RunResult> Compute(const RunArgs& args, absl::Duration timeout, const CallOptions& options);
  void ComputeAsync(const OperationArgs& args, absl::Duration timeout, const CallOptions& options,
                    std::function<void(absl::StatusOr<Result>)> done);
  void ComputeAsync(const RunArgs& args, absl::Duration timeout, const CallOptions& options,
                    std::function<void(absl::StatusOr<RunResult>)> done);

 private:
  // `encode` makes the message, and `decode` the result out of the response, both with the regions' part in
  // the attempt.
  template <typename Encode, typename Decode>
  auto Call(const std::string& method, const Encode& encode, const Decode& decode, absl::Duration timeout,
            const CallOptions& options) -> decltype(decode(grpc::ByteBuffer(), SharedPlaces()));
  template <typename Encode, typename Decode, typename Done>
  struct Repeated;
  template <typename Encode, typename Decode, typename Done>
  void CallAsync(const std::string& method, Encode encode, Decode decode, absl::Duration timeout,
                 const CallOptions& options, Done done);

  RegionClient regions_;  // calls in flight use it
  Connection connection_;
  TensorClient tensors_;  // before the connection ends, it drops what is left
};

template <typename Encode, typename Decode>
auto Client::Impl::Call(const std::string& method, const Encode& encode, const Decode& decode,
                        absl::Duration timeout, const CallOptions& options)
    -> decltype(decode(grpc::ByteBuffer(), SharedPlaces())) {
  RETURN_IF_ERROR(CheckTimeout(timeout));
  std::optional<RegionCall> attempt;
  const auto encode_attempt = [&] { return encode(attempt.emplace(regions_)); };
  // Not before the server has confirmed its end does the memory of a failed attempt belong to the caller
  // again, or to the next attempt.
  const auto failed = [&] { WithdrawAndWait(*attempt); };
  ASSIGN_OR_RETURN(
      const grpc::ByteBuffer response,
      connection_.Call(method, encode_attempt, absl::Now() + timeout, options.request_id, failed));
  return decode(response, attempt->places());
}

// A call that nobody waits for, with its attempts.
template <typename Encode, typename Decode, typename Done>
struct Client::Impl::Repeated : std::enable_shared_from_this<Repeated<Encode, Decode, Done>> {
  Repeated(Impl& client, std::string method, Encode encode, Decode decode, Done done,
           const CallOptions& options, absl::Time deadline)
      : client(client),
        method(std::move(method)),
        encode(std::move(encode)),
        decode(std::move(decode)),
        done(std::move(done)),
        request_id(options.request_id),
        stop(options.stop),
        attempts(std::make_shared<Attempts>(client.connection_.AttemptsUntil(deadline))) {}

  void Start() {
    const auto attempt = std::make_shared<RegionCall>(client.regions_);
    absl::StatusOr<OutgoingMessage> message = encode(*attempt);
    if (!message.ok()) return done(message.status());
    auto ended = [self = this->shared_from_this(),
                  attempt](const absl::StatusOr<grpc::ByteBuffer>& response) {
      if (response.ok()) {
        auto result = self->decode(*response, attempt->places());
        attempt->Release();
        return self->done(std::move(result));
      }
      if (!attempt->uses_regions()) return self->Failed(response.status());
      // Neither this thread nor the one that hears of the end may be kept from its work by a callback.
      CallbackThread& callbacks = self->client.regions_.callbacks();
      callbacks.Expect();
      attempt->Withdraw([self, attempt, &callbacks, status = response.status()] {
        callbacks.Run([self, attempt, status] {
          attempt->Release();
          self->Failed(status);
        });
      });
    };
    client.connection_.channel().CallAsync(method, *std::move(message), attempts->deadline(), request_id,
                                           std::move(ended), stop);
  }

  void Failed(const absl::Status& status) {
    const auto self = this->shared_from_this();
    client.connection_.RetryAsync(
        attempts, status, stop, [self] { self->Start(); },
        [self](absl::Status last) { self->done(std::move(last)); });
  }

  Impl& client;
  const std::string method;
  const Encode encode;
  const Decode decode;
  const Done done;
  const std::string request_id;
  const std::stop_token stop;
  const std::shared_ptr<Attempts> attempts;
};

template <typename Encode, typename Decode, typename Done>
void Client::Impl::CallAsync(const std::string& method, Encode encode, Decode decode, absl::Duration timeout,
                             const CallOptions& options, Done done) {
  if (absl::Status status = CheckTimeout(timeout); !status.ok()) return done(std::move(status));
  std::make_shared<Repeated<Encode, Decode, Done>>(*this, method, std::move(encode), std::move(decode),
                                                   std::move(done), options, absl::Now() + timeout)
      ->Start();
}

namespace {

// The message of one attempt.
template <typename Args>
absl::StatusOr<OutgoingMessage> EncodeWithRegions(const Args& args, const Destination& destination,
                                                  RegionCall& attempt) {
  if (attempt.MayPlace(destination)) {
    const std::optional<ArrayType> type = ResultTypeOf(args);
    RETURN_IF_ERROR(attempt.Place({&destination, 1}, {&type, 1}));
  }
  return Encode(args, destination, attempt.places());
}

absl::StatusOr<OutgoingMessage> EncodeWithRegions(const RunArgs& args, RegionCall& attempt) {
  const bool may_place = std::any_of(args.destinations.begin(), args.destinations.end(),
                                     [&](const Destination& each) { return attempt.MayPlace(each); });
  if (may_place) RETURN_IF_ERROR(attempt.Place(args.destinations, ResultTypesOf(args)));
  return Encode(args, attempt.places());
}

}  // namespace

absl::StatusOr<Result> Client::Impl::Compute(const OperationArgs& args, absl::Duration timeout,
                                             const CallOptions& options) {
  const auto encode = [&](RegionCall& attempt) {
    return std::visit(
        [&](const auto& operation) { return EncodeWithRegions(operation, options.destination, attempt); },
        args);
  };
  const auto decode = [&](const grpc::ByteBuffer& response, const SharedPlaces& places) {
    return DecodeResult(response, options.destination, tensors_.make_tensor(), places);
  };
  return Call(MethodOf(args), encode, decode, timeout, options);
}

absl::StatusOr<RunResult> Client::Impl::Compute(const RunArgs& args, absl::Duration timeout,
                                                const CallOptions& options) {
  const auto encode = [&](RegionCall& attempt) { return EncodeWithRegions(args, attempt); };
  const auto decode = [&](const grpc::ByteBuffer& response, const SharedPlaces& places) {
    return DecodeRunResult(response, OutputsOf(args), args.destinations, tensors_.make_tensor(), places);
  };
  return Call(RunMethod(), encode, decode, timeout, options);
}

void Client::Impl::ComputeAsync(const OperationArgs& args, absl::Duration timeout, const CallOptions& options,
                                std::function<void(absl::StatusOr<Result>)> done) {
  const auto encode = [args, destination = options.destination](RegionCall& attempt) {
    return std::visit(
        [&](const auto& operation) { return EncodeWithRegions(operation, destination, attempt); }, args);
  };
  const auto decode = [destination = options.destination, make_tensor = tensors_.make_tensor()](
                          const grpc::ByteBuffer& response, const SharedPlaces& places) {
    return DecodeResult(response, destination, make_tensor, places);
  };
  CallAsync(MethodOf(args), encode, decode, timeout, options, std::move(done));
}

void Client::Impl::ComputeAsync(const RunArgs& args, absl::Duration timeout, const CallOptions& options,
                                std::function<void(absl::StatusOr<RunResult>)> done) {
  const auto encode = [args](RegionCall& attempt) { return EncodeWithRegions(args, attempt); };
  const auto decode = [outputs = OutputsOf(args), destinations = args.destinations,
                       make_tensor = tensors_.make_tensor()](const grpc::ByteBuffer& response,
                                                             const SharedPlaces& places) {
    return DecodeRunResult(response, outputs, destinations, make_tensor, places);
  };
  CallAsync(RunMethod(), encode, decode, timeout, options, std::move(done));
}

Client::Client(const std::string& target, const ClientOptions& options)
    : impl_(std::make_unique<Impl>(target, options)) {}
Client::~Client() = default;
void Client::Close() { impl_->Close(); }

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

absl::StatusOr<Result> Client::Call(const OperationArgs& args, absl::Duration timeout,
                                    const CallOptions& options) {
  return impl_->Compute(args, timeout, options);
}

absl::StatusOr<RunResult> Client::Run(const RunArgs& args, absl::Duration timeout,
                                      const CallOptions& options) {
  return impl_->Compute(args, timeout, options);
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

absl::StatusOr<Region> Client::OpenRegion(std::size_t bytes, absl::Duration timeout) {
  return impl_->OpenRegion(bytes, timeout);
}

absl::StatusOr<v1::GetInfoResponse> Client::GetInfo(absl::Duration timeout) {
  ASSIGN_OR_RETURN(const grpc::ByteBuffer response,
                   impl_->Call(
                       GetInfoMethod(), [] { return MessageWriter().Finish(); }, timeout));
  ASSIGN_OR_RETURN(const std::string bytes, Flatten(response));
  v1::GetInfoResponse info;
  if (!info.ParseFromString(bytes)) return BadResponse("no GetInfoResponse");
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
  ASSIGN_OR_RETURN(const grpc::ByteBuffer response, impl_->Call(HealthMethod(), encode, timeout));
  ASSIGN_OR_RETURN(const std::string bytes, Flatten(response));
  google::protobuf::UnknownFieldSet fields;
  if (!fields.ParseFromString(bytes)) {
    return BadResponse("no HealthCheckResponse");
  }
  std::uint64_t status = 0;
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    if (field.number() != kStatus) continue;
    if (field.type() != google::protobuf::UnknownField::TYPE_VARINT) return BadResponse("no HealthCheckResponse");
    status = field.varint();
  }
  return status == kServing;
}

void Client::CallAsync(const OperationArgs& args, absl::Duration timeout, const CallOptions& options,
                       std::function<void(absl::StatusOr<Result>)> done) {
  impl_->ComputeAsync(args, timeout, options, std::move(done));
}

void Client::RunAsync(const RunArgs& args, absl::Duration timeout, const CallOptions& options,
                      std::function<void(absl::StatusOr<RunResult>)> done) {
  impl_->ComputeAsync(args, timeout, options, std::move(done));
}

}  // namespace warpline::client
