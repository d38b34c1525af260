#include "warpline/client.h"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "client/src/arrived.h"
#include "client/src/attempts.h"
#include "client/src/connection.h"
#include "client/src/grpc_error.h"
#include "client/src/message_writer.h"
#include "client/src/methods.h"
#include "client/src/region_client.h"
#include "client/src/region_pool.h"
#include "client/src/runner.h"
#include "client/src/shared_region.h"
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

}  // namespace

class Client::Impl {
 public:
  Impl(const std::string& target, const ClientOptions& options)
      : regions_(target, options), connection_(target, options), tensors_(connection_, options.channels) {
    const SharedMemory mode = options.shared_memory;
    const bool may_share = mode == SharedMemory::kAuto && regions_.SocketPath().ok();
    if (may_share || mode == SharedMemory::kAlways) pool_.emplace(regions_, connection_, options);
    runner_.emplace(CallSite{regions_, pool_ ? &*pool_ : nullptr, connection_, tensors_}, options,
                    [this](absl::Time deadline) -> absl::StatusOr<v1::Limits> {
                      ASSIGN_OR_RETURN(const v1::GetInfoResponse info, GetInfo(deadline - absl::Now()));
                      return info.limits();
                    });
  }
  ~Impl() { connection_.EndRetries(); }

  // A second caller waits for the first.
  void Close() {
    std::call_once(closed_, [this] {
      tensors_.Close();
      connection_.Close();
    });
  }
  TensorClient& tensors() { return tensors_; }
  Runner& runner() { return *runner_; }
  // Runs a program that has only one step.
  absl::StatusOr<Result> RunOneStep(RunArgs args, absl::Duration timeout, const CallOptions& options);
  absl::StatusOr<Region> OpenRegion(std::size_t bytes, absl::Duration timeout) {
    return regions_.Open(connection_, bytes, timeout);
  }
  absl::StatusOr<v1::GetInfoResponse> GetInfo(absl::Duration timeout);
  absl::StatusOr<Array> Empty(DType dtype, const Shape& shape, absl::Duration timeout);
  bool Shares(const void* data, std::size_t bytes) const;
  std::string TakeWarning() { return pool_ ? pool_->TakeWarning() : ""; }
  // Calls a method other than Run.
  absl::StatusOr<grpc::ByteBuffer> Call(const std::string& method,
                                        const std::function<absl::StatusOr<OutgoingMessage>()>& encode,
                                        absl::Duration timeout) {
    RETURN_IF_ERROR(CheckTimeout(timeout));
    return connection_.Call(method, encode, absl::Now() + timeout, "");
  }

 private:
  std::once_flag closed_;
  RegionClient regions_;  // calls in flight use all of these members
  std::optional<RegionPool> pool_;
  Connection connection_;
  TensorClient tensors_;  // destroyed before the connection, since it drops the remaining tensors
  std::optional<Runner> runner_;
};

absl::StatusOr<Result> Client::Impl::RunOneStep(RunArgs args, absl::Duration timeout,
                                                const CallOptions& options) {
  args.destinations = {options.destination};
  ASSIGN_OR_RETURN(RunResult run, runner_->Run(args, timeout, options));
  return Result{.array = std::move(run.outputs.front().second),
                .tensor = std::move(run.tensors.front()),
                .execution = std::move(run.execution),
                .streamed = std::move(run.streamed)};
}

bool Client::Impl::Shares(const void* data, std::size_t bytes) const {
  const std::shared_ptr<SharedRegion> region = regions_.table().Find(data, bytes);
  return region != nullptr && region->status().ok();
}

absl::StatusOr<Array> Client::Impl::Empty(DType dtype, const Shape& shape, absl::Duration timeout) {
  RETURN_IF_ERROR(CheckTimeout(timeout));
  Attempts attempts = connection_.AttemptsUntil(absl::Now() + timeout);
  while (pool_) {
    absl::StatusOr<Array> array = pool_->Empty(dtype, shape, attempts.deadline());
    if (array.ok()) return array;
    const std::optional<absl::Duration> delay = attempts.DelayAfter(array.status());
    if (!delay) return WithAttempts(array.status(), attempts.failed() + 1);
    connection_.channel().Pause(*delay);
  }
  ASSIGN_OR_RETURN(const std::size_t bytes, ByteSize({.dtype = dtype, .shape = shape}));
  return Array::Allocate(dtype, shape, bytes);
}

Client::Client(const std::string& target, const ClientOptions& options)
    : impl_(std::make_unique<Impl>(target, options)) {}
Client::~Client() = default;
void Client::Close() { impl_->Close(); }

absl::StatusOr<Result> Client::Transpose(const TransposeArgs& args, absl::Duration timeout,
                                         const CallOptions& options) {
  return impl_->RunOneStep(OneStep(args), timeout, options);
}

absl::StatusOr<Result> Client::Gemm(const GemmArgs& args, absl::Duration timeout,
                                    const CallOptions& options) {
  return impl_->RunOneStep(OneStep(args), timeout, options);
}

absl::StatusOr<Result> Client::Reduce(const ReduceArgs& args, absl::Duration timeout,
                                      const CallOptions& options) {
  return impl_->RunOneStep(OneStep(args), timeout, options);
}

absl::StatusOr<RunResult> Client::Run(const RunArgs& args, absl::Duration timeout,
                                      const CallOptions& options) {
  return impl_->runner().Run(args, timeout, options);
}

void Client::RunAsync(const RunArgs& args, absl::Duration timeout, const CallOptions& options,
                      std::function<void(absl::StatusOr<RunResult>)> done) {
  impl_->runner().RunAsync(args, timeout, options, std::move(done));
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

bool Client::Shares(const void* data, std::size_t bytes) const { return impl_->Shares(data, bytes); }

absl::StatusOr<Array> Client::Empty(DType dtype, const Shape& shape, absl::Duration timeout) {
  return impl_->Empty(dtype, shape, timeout);
}

std::string Client::TakeWarning() { return impl_->TakeWarning(); }

absl::StatusOr<v1::GetInfoResponse> Client::GetInfo(absl::Duration timeout) {
  return impl_->GetInfo(timeout);
}

absl::StatusOr<v1::GetInfoResponse> Client::Impl::GetInfo(absl::Duration timeout) {
  ASSIGN_OR_RETURN(const grpc::ByteBuffer response,
                   Call(
                       GetInfoMethod(), [] { return MessageWriter().Finish(); }, timeout));
  ASSIGN_OR_RETURN(const std::string bytes, Flatten(response));
  v1::GetInfoResponse info;
  if (!info.ParseFromString(bytes)) return BadResponse("no GetInfoResponse");
  return info;
}

absl::StatusOr<bool> Client::IsServing(const std::string& service, absl::Duration timeout) {
  // The generated types of these messages are not linked: otherwise a program with its own copy of these
  // types could not link this library.
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
    if (field.type() != google::protobuf::UnknownField::TYPE_VARINT)
      return BadResponse("no HealthCheckResponse");
    status = field.varint();
  }
  return status == kServing;
}

}  // namespace warpline::client
