#include "client/src/codec.h"

#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "proto/wire/scanner.h"
#include "proto/wire/tensor_field.h"

namespace warpline::client {
namespace {

using v1::NamedTensor;
using v1::Tensor;

absl::Status Misnamed(std::string_view name, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(name), ": ", status.message()));
}

// Everything of a Tensor but its elements.
Tensor WithoutElements(const ConstArray& array) {
  Tensor tensor;
  tensor.set_data_type(ToProto(array.dtype));
  for (int i = 0; i < array.shape.rank; ++i) tensor.add_shape(array.shape[i]);
  tensor.set_row_stride(array.row_stride);
  return tensor;
}

// Encodes one operand; `name` is the field's, for errors.
absl::Status AppendTensor(MessageWriter& message, int field, const char* name, const ConstArray& array) {
  const absl::StatusOr<std::size_t> bytes = ByteSize(array);
  if (!bytes.ok()) return Misnamed(name, bytes.status());
  message.Append(TensorHead(field, WithoutElements(array), *bytes));
  message.AppendPayload({array.data, *bytes, array.owner});
  return absl::OkStatus();
}

absl::Status AppendNamedTensor(MessageWriter& message, int field, const std::string& name,
                               const ConstArray& array) {
  const absl::StatusOr<std::size_t> bytes = ByteSize(array);
  if (!bytes.ok()) return Misnamed(name, bytes.status());
  message.Append(NamedTensorHead(field, name, WithoutElements(array), *bytes));
  message.AppendPayload({array.data, *bytes, array.owner});
  return absl::OkStatus();
}

absl::Status BadResponse(absl::string_view why) {
  return absl::InternalError(absl::StrCat("the server's response is not valid: ", why));
}

// What came before the elements is the server's to choose, so a response has no limits but that of any
// message.
constexpr ScanLimits kResponseLimits{.header_bytes = kMaxMessageBytes, .payloads = kMaxMessageBytes};

// A response as it arrived. The message has tokens in the place of its payloads, which lie in the slices.
template <typename Response>
struct Arrived {
  std::vector<grpc::Slice> slices;
  std::vector<std::span<const std::byte>> spans;  // of the slices
  std::vector<PayloadRange> payloads;
  Response message;

  // The payload for which the token stands. A field that is absent has an empty one.
  absl::StatusOr<PayloadRange> PayloadOf(const std::string& token) const {
    if (token.empty()) return PayloadRange{};
    const std::optional<std::size_t> index = PayloadIndex(token);
    if (!index.has_value() || *index >= payloads.size()) return absl::InternalError("no token of a payload");
    return payloads[*index];
  }
  void CopyTo(void* destination, const PayloadRange& range) const {
    auto* to = static_cast<std::byte*>(destination);
    ForEachPiece(spans, range, [&](std::span<const std::byte> piece) {
      std::memcpy(to, piece.data(), piece.size());
      to += piece.size();
    });
  }
};

template <typename Response>
absl::StatusOr<Arrived<Response>> Read(const grpc::ByteBuffer& message,
                                       const google::protobuf::FieldDescriptor* payload) {
  // It is never destroyed: a callback may still use it while the process ends.
  static const auto& schema = *new ScanSchema(ScanSchema::For(Response::descriptor(), payload));
  Arrived<Response> arrived;
  if (message.Valid() && !message.Dump(&arrived.slices).ok()) {
    return BadResponse("it cannot be decompressed");
  }
  arrived.spans = SpansOf(arrived.slices);
  absl::StatusOr<ScannedMessage> scanned = ScanMessage(schema, arrived.spans, kResponseLimits);
  if (!scanned.ok()) return BadResponse(scanned.status().message());
  if (!arrived.message.ParseFromString(scanned->header)) {
    return BadResponse(absl::StrCat("it is no ", Response::descriptor()->name()));
  }
  arrived.payloads = std::move(scanned->payloads);
  return arrived;
}

// These are why one function serves three messages. They compare as int, because enumerations of different
// messages do not compare.
static_assert(int{v1::GemmResponse::kDFieldNumber} == v1::TransposeResponse::kYFieldNumber);
static_assert(int{v1::ReduceResponse::kYFieldNumber} == v1::TransposeResponse::kYFieldNumber);
static_assert(int{v1::GemmResponse::kExecutionFieldNumber} == v1::TransposeResponse::kExecutionFieldNumber);
static_assert(int{v1::ReduceResponse::kExecutionFieldNumber} == v1::TransposeResponse::kExecutionFieldNumber);

absl::Status TooSmall(std::size_t needed, std::size_t given) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the result has ", needed, " bytes; the destination has ", given));
}

// Checks the array and copies its elements to their place.
template <typename Response>
absl::StatusOr<Array> Store(const Arrived<Response>& response, const Tensor& tensor,
                            const Destination& destination) {
  const std::optional<DType> dtype = FromProto(tensor.data_type());
  if (!dtype) return BadResponse(absl::StrCat("data type ", static_cast<int>(tensor.data_type())));
  if (tensor.shape_size() > kMaxRank) return BadResponse(absl::StrCat("rank ", tensor.shape_size()));
  ConstArray view{.dtype = *dtype};
  for (std::int64_t size : tensor.shape()) view.shape.Append(size);
  const absl::StatusOr<std::size_t> bytes = ByteSize(view);
  if (!bytes.ok()) return BadResponse(bytes.status().message());
  const std::int64_t stride = tensor.row_stride();
  if (stride != 0 && (view.shape.rank == 0 || stride != view.shape[view.shape.rank - 1])) {
    return BadResponse(absl::StrCat("a row stride of ", stride));
  }
  ASSIGN_OR_RETURN(const PayloadRange elements, response.PayloadOf(tensor.inline_()));
  if (elements.length != *bytes) {
    return BadResponse(absl::StrCat(elements.length, " bytes of elements instead of ", *bytes));
  }
  Array array;
  if (destination.data != nullptr) {
    if (destination.bytes < *bytes) return TooSmall(*bytes, destination.bytes);
    array = Array::Over(*dtype, view.shape, destination.data, *bytes);
  } else {
    ASSIGN_OR_RETURN(array, Array::Allocate(*dtype, view.shape, *bytes));
  }
  response.CopyTo(array.data(), elements);
  return array;
}

}  // namespace

absl::StatusOr<OutgoingMessage> Encode(const TransposeArgs& args) {
  v1::TransposeRequest request;  // without its tensor, as below
  request.mutable_perm()->Add(args.perm.begin(), args.perm.end());
  request.set_variant(args.variant);
  MessageWriter message;
  RETURN_IF_ERROR(AppendTensor(message, v1::TransposeRequest::kXFieldNumber, "x", args.x));
  message.Append(request.SerializeAsString());
  return std::move(message).Finish();
}

absl::StatusOr<OutgoingMessage> Encode(const GemmArgs& args) {
  v1::GemmRequest request;
  request.set_trans_a(args.trans_a);
  request.set_trans_b(args.trans_b);
  if (args.alpha) request.set_alpha(*args.alpha);
  if (args.beta) request.set_beta(*args.beta);
  request.set_precision(args.precision);
  request.set_variant(args.variant);
  request.set_activation(args.activation);
  if (args.out_data_type) request.set_out_data_type(ToProto(*args.out_data_type));
  MessageWriter message;
  RETURN_IF_ERROR(AppendTensor(message, v1::GemmRequest::kAFieldNumber, "a", args.a));
  RETURN_IF_ERROR(AppendTensor(message, v1::GemmRequest::kBFieldNumber, "b", args.b));
  if (args.c) RETURN_IF_ERROR(AppendTensor(message, v1::GemmRequest::kCFieldNumber, "c", *args.c));
  if (args.bias) {
    RETURN_IF_ERROR(AppendTensor(message, v1::GemmRequest::kBiasFieldNumber, "bias", *args.bias));
  }
  message.Append(request.SerializeAsString());
  return std::move(message).Finish();
}

absl::StatusOr<OutgoingMessage> Encode(const ReduceArgs& args) {
  v1::ReduceRequest request;
  request.set_op(args.op);
  request.mutable_axes()->Add(args.axes.begin(), args.axes.end());
  request.set_keepdims(args.keepdims);
  request.set_variant(args.variant);
  if (args.out_data_type) request.set_out_data_type(ToProto(*args.out_data_type));
  request.set_ddof(args.ddof);
  MessageWriter message;
  RETURN_IF_ERROR(AppendTensor(message, v1::ReduceRequest::kXFieldNumber, "x", args.x));
  message.Append(request.SerializeAsString());
  return std::move(message).Finish();
}

absl::StatusOr<OutgoingMessage> Encode(const RunArgs& args) {
  using Request = v1::RunRequest;
  std::string program;
  AppendFieldHead(program, Request::kProgramFieldNumber, args.program.ByteSizeLong());
  args.program.AppendToString(&program);
  MessageWriter message;
  message.Append(program);
  for (const auto& [name, array] : args.inputs) {
    RETURN_IF_ERROR(AppendNamedTensor(message, Request::kInputsFieldNumber, name, array));
  }
  return std::move(message).Finish();
}

absl::StatusOr<OutgoingMessage> EncodeEcho(const Payload& payload) {
  std::string head;
  AppendFieldHead(head, v1::EchoRequest::kPayloadFieldNumber, payload.bytes);
  MessageWriter message;
  message.Append(head);
  message.AppendPayload(payload);
  return std::move(message).Finish();
}

absl::StatusOr<Result> DecodeResult(const grpc::ByteBuffer& message, const Destination& destination) {
  ASSIGN_OR_RETURN(Arrived<v1::TransposeResponse> response,
                   Read<v1::TransposeResponse>(message, InlineField()));
  ASSIGN_OR_RETURN(Array array, Store(response, response.message.y(), destination));
  return Result{std::move(array), std::move(*response.message.mutable_execution())};
}

absl::StatusOr<RunResult> DecodeRunResult(const grpc::ByteBuffer& message,
                                          std::span<const std::string> outputs,
                                          std::span<const Destination> destinations) {
  ASSIGN_OR_RETURN(Arrived<v1::RunResponse> response, Read<v1::RunResponse>(message, InlineField()));
  const auto& arrived = response.message.outputs();
  if (static_cast<std::size_t>(arrived.size()) != outputs.size()) {
    return BadResponse(absl::StrCat(arrived.size(), " outputs instead of ", outputs.size()));
  }
  RunResult result;
  result.execution = std::move(*response.message.mutable_execution());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const NamedTensor& output = arrived[static_cast<int>(i)];
    if (output.name() != outputs[i]) {
      return BadResponse(
          absl::StrCat("output ", i, " is \"", output.name(), "\" instead of \"", outputs[i], "\""));
    }
    ASSIGN_OR_RETURN(Array array, Store(response, output.tensor(),
                                        i < destinations.size() ? destinations[i] : Destination{}));
    result.outputs.emplace_back(output.name(), std::move(array));
  }
  return result;
}

absl::StatusOr<std::size_t> DecodeEcho(const grpc::ByteBuffer& message, const Destination& destination) {
  using Response = v1::EchoResponse;
  const auto* field = Response::descriptor()->FindFieldByNumber(Response::kPayloadFieldNumber);
  ASSIGN_OR_RETURN(const Arrived<Response> response, Read<Response>(message, field));
  ASSIGN_OR_RETURN(const PayloadRange payload, response.PayloadOf(response.message.payload()));
  if (payload.length > destination.bytes) return TooSmall(payload.length, destination.bytes);
  response.CopyTo(destination.data, payload);
  return payload.length;
}

}  // namespace warpline::client
