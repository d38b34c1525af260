#include "warpline/client.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/src/codec.h"
#include "client/src/message_writer.h"
#include "client/src/methods.h"
#include "client/src/raw_channel.h"
#include "google/protobuf/unknown_field_set.h"
#include "kernels/status_macros.h"
#include "proto/wire/tensor_field.h"
#include "warpline/error.h"

namespace warpline::client {
namespace {

// Where the server gives no delay: UNAVAILABLE, as it restarts. Doubled from one attempt to the next.
constexpr absl::Duration kFirstRetryDelay = absl::Milliseconds(100);

absl::Status CheckTimeout(absl::Duration timeout) {
  if (timeout > absl::ZeroDuration() && timeout < absl::InfiniteDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a deadline must be finite and above zero, not ", absl::FormatDuration(timeout)));
}

// How long to wait before the next attempt; nothing if there is to be none.
std::optional<absl::Duration> RetryDelay(const absl::Status& status, int attempt) {
  const std::optional<absl::Duration> given = DetailsOf(status).retry_delay;
  if (absl::IsResourceExhausted(status)) return given;
  if (!absl::IsUnavailable(status)) return std::nullopt;
  return given.value_or(kFirstRetryDelay * (1 << std::min(attempt, 8)));
}

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
      : max_retries_(options.max_retries), channel_(target, options.channel) {}

  // `encode` makes the message, once for each attempt.
  template <typename EncodeRequest>
  absl::StatusOr<grpc::ByteBuffer> Call(const std::string& method, const EncodeRequest& encode,
                                        absl::Duration timeout, const CallOptions& options);
  // One of the operations.
  template <typename Args>
  absl::StatusOr<Result> Compute(const Args& args, absl::Duration timeout, const CallOptions& options);
  template <typename Decode, typename Done>
  void CallAsync(const std::string& method, absl::StatusOr<OutgoingMessage> message, absl::Duration timeout,
                 const CallOptions& options, Decode decode, Done done);

 private:
  int max_retries_;
  RawChannel channel_;
};

template <typename EncodeRequest>
absl::StatusOr<grpc::ByteBuffer> Client::Impl::Call(const std::string& method, const EncodeRequest& encode,
                                                    absl::Duration timeout, const CallOptions& options) {
  RETURN_IF_ERROR(CheckTimeout(timeout));
  const absl::Time deadline = absl::Now() + timeout;
  for (int attempt = 0;; ++attempt) {
    // Encoded anew for each attempt: keeping the slices would hide when gRPC lets go of them.
    ASSIGN_OR_RETURN(OutgoingMessage message, encode());
    absl::StatusOr<grpc::ByteBuffer> response =
        channel_.Call(method, std::move(message), deadline, options.request_id);
    if (response.ok() || attempt >= max_retries_) return response;
    const std::optional<absl::Duration> delay = RetryDelay(response.status(), attempt);
    if (!delay || absl::Now() + *delay >= deadline) return response;
    absl::SleepFor(*delay);
  }
}

template <typename Args>
absl::StatusOr<Result> Client::Impl::Compute(const Args& args, absl::Duration timeout,
                                             const CallOptions& options) {
  ASSIGN_OR_RETURN(const grpc::ByteBuffer response,
                   Call(
                       MethodOf(args), [&] { return Encode(args); }, timeout, options));
  return DecodeResult(response, options.destination);
}

template <typename Decode, typename Done>
void Client::Impl::CallAsync(const std::string& method, absl::StatusOr<OutgoingMessage> message,
                             absl::Duration timeout, const CallOptions& options, Decode decode, Done done) {
  if (absl::Status status = CheckTimeout(timeout); !status.ok()) return done(std::move(status));
  if (!message.ok()) return done(message.status());
  channel_.CallAsync(
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
  return DecodeRunResult(response, OutputsOf(args), args.destinations);
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
  const auto decode = [destination = options.destination](const grpc::ByteBuffer& response) {
    return DecodeResult(response, destination);
  };
  impl_->CallAsync(MethodOf(args), std::visit([](const auto& a) { return Encode(a); }, args), timeout,
                   options, decode, std::move(done));
}

void Client::RunAsync(const RunArgs& args, absl::Duration timeout, const CallOptions& options,
                      std::function<void(absl::StatusOr<RunResult>)> done) {
  const auto decode = [outputs = OutputsOf(args),
                       destinations = args.destinations](const grpc::ByteBuffer& response) {
    return DecodeRunResult(response, outputs, destinations);
  };
  impl_->CallAsync(RunMethod(), Encode(args), timeout, options, decode, std::move(done));
}

}  // namespace warpline::client
