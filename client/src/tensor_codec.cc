#include "client/src/tensor_codec.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/arrived.h"
#include "kernels/status_macros.h"
#include "proto/wire/tensor_field.h"

namespace warpline::client {
namespace {

// Finish cannot fail: these messages are far below the size limit.
OutgoingMessage Finished(MessageWriter message) { return *std::move(message).Finish(); }

OutgoingMessage Encoded(const google::protobuf::Message& request) {
  MessageWriter message;
  message.Append(request.SerializeAsString());
  return Finished(std::move(message));
}

template <typename Response>
absl::StatusOr<Response> Parsed(const grpc::ByteBuffer& message) {
  // Only GetResponse has a payload.
  ASSIGN_OR_RETURN(Arrived<Response> arrived, ReadResponse<Response>(message, InlineField()));
  return std::move(arrived.message);
}

}  // namespace

OutgoingMessage EncodeCreate(const ConstArray& array, const PutOptions& options) {
  v1::CreateRequest request;
  request.set_data_type(ToProto(array.dtype));
  for (int i = 0; i < array.shape.rank; ++i) request.add_shape(array.shape[i]);
  request.set_ttl_seconds(absl::ToDoubleSeconds(options.ttl));
  if (options.device) request.set_device(*options.device);
  return Encoded(request);
}

OutgoingMessage EncodeDrop(const std::string& id) {
  v1::DropRequest request;
  request.set_id(id);
  return Encoded(request);
}

OutgoingMessage EncodeDropEach(std::span<const std::string> ids) {
  v1::DropRequest request;
  request.mutable_ids()->Add(ids.begin(), ids.end());
  return Encoded(request);
}

OutgoingMessage EncodeRenew(const std::string& id, std::optional<absl::Duration> ttl) {
  v1::RenewRequest request;
  request.set_id(id);
  if (ttl) request.set_ttl_seconds(absl::ToDoubleSeconds(*ttl));
  return Encoded(request);
}

OutgoingMessage EncodeRenewEach(std::span<const std::string> ids) {
  v1::RenewRequest request;
  request.mutable_ids()->Add(ids.begin(), ids.end());
  return Encoded(request);
}

OutgoingMessage EncodeList(const std::string& page_token) {
  v1::ListRequest request;
  request.set_page_token(page_token);
  return Encoded(request);
}

OutgoingMessage EncodeGet(const std::string& id, std::size_t offset, std::size_t length) {
  v1::GetRequest request;
  request.set_id(id);
  request.set_offset(static_cast<std::int64_t>(offset));
  request.set_length(static_cast<std::int64_t>(length));
  return Encoded(request);
}

OutgoingMessage EncodePut(const std::string& id, const ConstArray& array, std::size_t begin,
                          std::size_t end) {
  v1::PutRequest request;
  request.set_id(id);
  request.set_offset(static_cast<std::int64_t>(begin));
  std::string head = request.SerializeAsString();
  AppendFieldHead(head, v1::PutRequest::kDataFieldNumber, end - begin);
  MessageWriter message;
  message.Append(head);
  const auto* data = static_cast<const char*>(array.data);
  const std::int64_t row = array.shape.rank == 0 ? 1 : array.shape[array.shape.rank - 1];
  if (array.row_stride == 0 || array.row_stride == row) {
    message.AppendPayload({data + begin, end - begin, array.owner});
    return Finished(std::move(message));
  }
  const auto size = static_cast<std::size_t>(SizeOf(array.dtype));
  const std::size_t row_bytes = static_cast<std::size_t>(row) * size;
  const std::size_t stride_bytes = static_cast<std::size_t>(array.row_stride) * size;
  while (begin < end) {
    const std::size_t within = begin % row_bytes;
    const std::size_t bytes = std::min(row_bytes - within, end - begin);
    message.AppendPayload({data + begin / row_bytes * stride_bytes + within, bytes, array.owner});
    begin += bytes;
  }
  return Finished(std::move(message));
}

absl::StatusOr<TensorInfo> DecodeInfo(const v1::TensorInfo& info) {
  const std::optional<DType> dtype = FromProto(info.data_type());
  if (!dtype) {
    return BadResponse(absl::StrCat("a tensor of data type ", static_cast<int>(info.data_type())));
  }
  if (info.shape_size() > kMaxRank) return BadResponse(absl::StrCat("a tensor of rank ", info.shape_size()));
  if (info.resident().id().empty()) return BadResponse("a resident tensor without an id");
  ConstArray view{.dtype = *dtype};
  for (std::int64_t size : info.shape()) view.shape.Append(size);
  const absl::StatusOr<std::size_t> bytes = ByteSize(view);
  if (!bytes.ok()) return BadResponse(bytes.status().message());
  if (info.size_bytes() != static_cast<std::int64_t>(*bytes) || info.missing_bytes() < 0 ||
      info.missing_bytes() > info.size_bytes()) {
    return BadResponse(absl::StrCat("a tensor of ", *bytes, " bytes is said to have ", info.size_bytes(),
                                    ", with ", info.missing_bytes(), " missing"));
  }
  return TensorInfo{.id = info.resident().id(),
                    .dtype = *dtype,
                    .shape = view.shape,
                    .device = info.device(),
                    .bytes = *bytes,
                    .missing_bytes = static_cast<std::size_t>(info.missing_bytes()),
                    .replicas = {info.replicas().begin(), info.replicas().end()},
                    .ttl = absl::Seconds(info.resident().ttl_seconds())};
}

// Both fields have the same number, so one function can decode both messages. They are compared as int
// because enumerations of different messages cannot be compared.
static_assert(int{v1::CreateResponse::kTensorFieldNumber} == v1::RenewResponse::kTensorFieldNumber);

absl::StatusOr<TensorInfo> DecodeTensor(const grpc::ByteBuffer& message) {
  ASSIGN_OR_RETURN(const v1::RenewResponse response, Parsed<v1::RenewResponse>(message));
  return DecodeInfo(response.tensor());
}

absl::StatusOr<std::vector<absl::Duration>> DecodeRenewedLengths(const grpc::ByteBuffer& message,
                                                                 std::size_t count) {
  ASSIGN_OR_RETURN(const v1::RenewResponse response, Parsed<v1::RenewResponse>(message));
  std::vector<absl::Duration> lengths;
  for (const double seconds : response.ttl_seconds()) lengths.push_back(absl::Seconds(seconds));
  if (response.has_tensor()) lengths.push_back(absl::Seconds(response.tensor().resident().ttl_seconds()));
  if (lengths.size() == count) return lengths;
  return BadResponse(absl::StrCat(lengths.size(), " lengths of leases where ", count, " were to come"));
}

absl::StatusOr<TensorPage> DecodeList(const grpc::ByteBuffer& message) {
  ASSIGN_OR_RETURN(v1::ListResponse response, Parsed<v1::ListResponse>(message));
  TensorPage page;
  for (const v1::TensorInfo& tensor : response.tensors()) {
    ASSIGN_OR_RETURN(TensorInfo info, DecodeInfo(tensor));
    page.tensors.push_back(std::move(info));
  }
  page.next_page_token = std::move(*response.mutable_next_page_token());
  return page;
}

absl::StatusOr<std::size_t> DecodeChunk(const grpc::ByteBuffer& message, std::size_t offset,
                                        std::span<std::byte> to) {
  using Response = v1::GetResponse;
  const auto* field = Response::descriptor()->FindFieldByNumber(Response::kDataFieldNumber);
  ASSIGN_OR_RETURN(const Arrived<Response> response, ReadResponse<Response>(message, field));
  ASSIGN_OR_RETURN(const PayloadRange data, response.PayloadOf(response.message.data()));
  if (response.message.offset() != static_cast<std::int64_t>(offset) || data.length > to.size()) {
    return BadResponse(absl::StrCat(data.length, " bytes at ", response.message.offset(), " where bytes ",
                                    offset, " to ", offset + to.size(), " were to come"));
  }
  if (data.length > 0) response.CopyTo(to.data(), data);
  return data.length;
}

}  // namespace warpline::client
