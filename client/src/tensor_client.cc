#include "client/src/tensor_client.h"

#include <cstddef>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/src/methods.h"
#include "client/src/tensor_codec.h"
#include "client/src/transfer.h"
#include "kernels/status_macros.h"

namespace warpline::client {

absl::StatusOr<grpc::ByteBuffer> TensorClient::Call(const std::string& method,
                                                    const std::function<OutgoingMessage()>& encode,
                                                    absl::Time deadline, const std::string& request_id) {
  connection_.Bind();
  return connection_.Call(method, encode, deadline, request_id);
}

absl::StatusOr<Tensor> TensorClient::Put(const ConstArray& array, absl::Duration timeout,
                                         const PutOptions& options) {
  RETURN_IF_ERROR(CheckTimeout(timeout));
  RETURN_IF_ERROR(ByteSize(array).status());
  // A resident tensor is dense, so the padding is not sent.
  ConstArray dense = array;
  dense.row_stride = 0;
  ASSIGN_OR_RETURN(const std::size_t bytes, ByteSize(dense));
  ASSIGN_OR_RETURN(const int channels,
                   ChannelsFor(options.channels == 0 ? channels_ : options.channels, bytes));
  const absl::Time deadline = absl::Now() + timeout;
  ASSIGN_OR_RETURN(
      const grpc::ByteBuffer response,
      Call(
          CreateMethod(), [&] { return EncodeCreate(array, options); }, deadline, options.request_id));
  ASSIGN_OR_RETURN(TensorInfo info, DecodeTensor(response));
  if (info.dtype != array.dtype || info.shape != array.shape) {
    return absl::InternalError("the server's tensor has another type or shape than the array");
  }
  info.missing_bytes = 0;
  Tensor tensor(std::move(info), leases_, true);  // the tensor is dropped if the transfer fails
  Transfer transfer(connection_, deadline, options.request_id, options.progress);
  RETURN_IF_ERROR(transfer.Put(tensor.id(), array, bytes, channels));
  return tensor;
}

absl::StatusOr<Array> TensorClient::Get(const TensorInfo& tensor, absl::Duration timeout,
                                        const GetOptions& options) {
  RETURN_IF_ERROR(CheckTimeout(timeout));
  return GetUntil(absl::Now() + timeout, tensor, options);
}

absl::StatusOr<Array> TensorClient::Get(const std::string& id, absl::Duration timeout,
                                        const GetOptions& options) {
  RETURN_IF_ERROR(CheckTimeout(timeout));
  const absl::Time deadline = absl::Now() + timeout;
  ASSIGN_OR_RETURN(const TensorInfo info, RenewUntil(deadline, id, {}, options.request_id));
  return GetUntil(deadline, info, options);
}

absl::StatusOr<Array> TensorClient::GetUntil(absl::Time deadline, const TensorInfo& tensor,
                                             const GetOptions& options) {
  const Destination& destination = options.destination;
  if (destination.keep)
    return absl::InvalidArgumentError("the result of Get cannot be kept: it is on the server already");
  ASSIGN_OR_RETURN(const int channels,
                   ChannelsFor(options.channels == 0 ? channels_ : options.channels, tensor.bytes));
  ASSIGN_OR_RETURN(Array array, Array::For(tensor.dtype, tensor.shape, tensor.bytes, destination));
  Transfer transfer(connection_, deadline, options.request_id, options.progress);
  RETURN_IF_ERROR(
      transfer.Get(tensor.id, std::span(static_cast<std::byte*>(array.data()), tensor.bytes), channels));
  return array;
}

absl::Status TensorClient::Drop(const std::string& id, absl::Duration timeout) {
  RETURN_IF_ERROR(CheckTimeout(timeout));
  return Call(
             DropMethod(), [&] { return EncodeDrop(id); }, absl::Now() + timeout)
      .status();
}

absl::StatusOr<TensorInfo> TensorClient::Renew(const std::string& id, std::optional<absl::Duration> ttl,
                                               absl::Duration timeout) {
  RETURN_IF_ERROR(CheckTimeout(timeout));
  // The response may be lost, and the new lease may be shorter.
  if (ttl) leases_->WillRestart(id, *ttl);
  ASSIGN_OR_RETURN(TensorInfo info, RenewUntil(absl::Now() + timeout, id, ttl, ""));
  leases_->Restarted(id, info.ttl);
  return info;
}

absl::StatusOr<TensorInfo> TensorClient::RenewUntil(absl::Time deadline, const std::string& id,
                                                    std::optional<absl::Duration> ttl,
                                                    const std::string& request_id) {
  ASSIGN_OR_RETURN(const grpc::ByteBuffer response,
                   Call(
                       RenewMethod(), [&] { return EncodeRenew(id, ttl); }, deadline, request_id));
  return DecodeTensor(response);
}

absl::StatusOr<Tensor> TensorClient::Attach(const std::string& id, absl::Duration timeout,
                                            const AttachOptions& options) {
  ASSIGN_OR_RETURN(TensorInfo info, Renew(id, {}, timeout));
  if (options.renew) return Tensor(std::move(info), leases_, false);
  return Tensor(std::move(info));
}

absl::StatusOr<std::vector<TensorInfo>> TensorClient::List(absl::Duration timeout) {
  RETURN_IF_ERROR(CheckTimeout(timeout));
  const absl::Time deadline = absl::Now() + timeout;
  std::vector<TensorInfo> tensors;
  std::string token;
  do {
    ASSIGN_OR_RETURN(const grpc::ByteBuffer response,
                     Call(
                         ListMethod(), [&] { return EncodeList(token); }, deadline));
    ASSIGN_OR_RETURN(TensorPage page, DecodeList(response));
    for (TensorInfo& tensor : page.tensors) tensors.push_back(std::move(tensor));
    token = std::move(page.next_page_token);
  } while (!token.empty());
  return tensors;
}

}  // namespace warpline::client
