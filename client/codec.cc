#include "client/codec.h"

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

using v1::Tensor;

// Encodes one operand; `name` is the field's, for errors.
absl::Status AppendTensor(MessageWriter& message, std::uint32_t field, const char* name,
                          const ConstArray& array) {
  const absl::StatusOr<std::size_t> bytes = ByteSize(array);
  if (!bytes.ok()) return absl::InvalidArgumentError(absl::StrCat(name, ": ", bytes.status().message()));
  MessageWriter head;
  head.AppendVarint(Tensor::kDataTypeFieldNumber, ToProto(array.dtype));
  head.AppendPacked(Tensor::kShapeFieldNumber,
                    std::span(array.shape.dims.data(), static_cast<std::size_t>(array.shape.rank)));
  if (array.row_stride != 0) {
    head.AppendVarint(Tensor::kRowStrideFieldNumber, static_cast<std::uint64_t>(array.row_stride));
  }
  message.AppendMessage(field, head.head(), Tensor::kInlineFieldNumber, {array.data, *bytes, array.owner});
  return absl::OkStatus();
}

void AppendInts(MessageWriter& message, std::uint32_t field, const std::vector<int>& values) {
  message.AppendPacked(field, std::vector<std::int64_t>(values.begin(), values.end()));
}

void AppendVariant(MessageWriter& message, std::uint32_t field, const std::string& variant) {
  if (!variant.empty()) message.AppendBytes(field, variant);
}

absl::Status BadResponse(absl::string_view why) {
  return absl::InternalError(absl::StrCat("the server's response is not valid: ", why));
}

// The parts of a response. `payload` refers to the slices.
struct Parts {
  Tensor tensor;  // without its elements
  SliceReader payload;
  v1::Execution execution;
};

// Sub-messages that come in pieces are merged, and of a repeated singular field the last wins, as in
// protobuf: parsing the concatenation does both.
absl::StatusOr<Parts> TakeApart(SliceReader message) {
  Parts parts;
  std::string tensor, execution;
  Field field, inner;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, NextField(message, field));
    if (!more) break;
    if (field.type != WireType::kBytes) continue;
    if (field.number == v1::TransposeResponse::kExecutionFieldNumber) field.contents.AppendTo(execution);
    if (field.number != v1::TransposeResponse::kYFieldNumber) continue;
    while (true) {
      ASSIGN_OR_RETURN(const bool more_inner, NextField(field.contents, inner));
      if (!more_inner) break;
      if (inner.number == Tensor::kInlineFieldNumber && inner.type == WireType::kBytes) {
        parts.payload = inner.contents;
      } else {
        inner.raw.AppendTo(tensor);
      }
    }
  }
  if (!parts.tensor.ParseFromString(tensor)) return absl::InternalError("y is not a Tensor");
  if (!parts.execution.ParseFromString(execution))
    return absl::InternalError("execution is not an Execution");
  return parts;
}

// Why one function serves three messages. (Through int, as enumerations of different messages do not
// compare.)
static_assert(int{v1::GemmResponse::kDFieldNumber} == v1::TransposeResponse::kYFieldNumber);
static_assert(int{v1::ReduceResponse::kYFieldNumber} == v1::TransposeResponse::kYFieldNumber);
static_assert(int{v1::GemmResponse::kExecutionFieldNumber} == v1::TransposeResponse::kExecutionFieldNumber);
static_assert(int{v1::ReduceResponse::kExecutionFieldNumber} == v1::TransposeResponse::kExecutionFieldNumber);

absl::StatusOr<std::vector<grpc::Slice>> SlicesOf(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  if (message.Valid() && !message.Dump(&slices).ok()) return BadResponse("it cannot be decompressed");
  return slices;
}

absl::Status TooSmall(std::size_t needed, std::size_t given) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the result has ", needed, " bytes; the destination has ", given));
}

}  // namespace

absl::StatusOr<OutgoingMessage> Encode(const TransposeArgs& args) {
  using Request = v1::TransposeRequest;
  MessageWriter message;
  RETURN_IF_ERROR(AppendTensor(message, Request::kXFieldNumber, "x", args.x));
  AppendInts(message, Request::kPermFieldNumber, args.perm);
  AppendVariant(message, Request::kVariantFieldNumber, args.variant);
  return std::move(message).Finish();
}

absl::StatusOr<OutgoingMessage> Encode(const GemmArgs& args) {
  using Request = v1::GemmRequest;
  MessageWriter message;
  RETURN_IF_ERROR(AppendTensor(message, Request::kAFieldNumber, "a", args.a));
  RETURN_IF_ERROR(AppendTensor(message, Request::kBFieldNumber, "b", args.b));
  if (args.c) RETURN_IF_ERROR(AppendTensor(message, Request::kCFieldNumber, "c", *args.c));
  if (args.trans_a) message.AppendVarint(Request::kTransAFieldNumber, 1);
  if (args.trans_b) message.AppendVarint(Request::kTransBFieldNumber, 1);
  if (args.alpha) message.AppendDouble(Request::kAlphaFieldNumber, *args.alpha);
  if (args.beta) message.AppendDouble(Request::kBetaFieldNumber, *args.beta);
  if (args.precision != v1::PRECISION_UNSPECIFIED) {
    message.AppendVarint(Request::kPrecisionFieldNumber, args.precision);
  }
  AppendVariant(message, Request::kVariantFieldNumber, args.variant);
  return std::move(message).Finish();
}

absl::StatusOr<OutgoingMessage> Encode(const ReduceArgs& args) {
  using Request = v1::ReduceRequest;
  MessageWriter message;
  RETURN_IF_ERROR(AppendTensor(message, Request::kXFieldNumber, "x", args.x));
  message.AppendVarint(Request::kOpFieldNumber, args.op);
  AppendInts(message, Request::kAxesFieldNumber, args.axes);
  if (args.keepdims) message.AppendVarint(Request::kKeepdimsFieldNumber, 1);
  AppendVariant(message, Request::kVariantFieldNumber, args.variant);
  return std::move(message).Finish();
}

absl::StatusOr<OutgoingMessage> EncodeEcho(const Payload& payload) {
  MessageWriter message;
  message.AppendPayload(v1::EchoRequest::kPayloadFieldNumber, payload);
  return std::move(message).Finish();
}

absl::StatusOr<Result> DecodeResult(const grpc::ByteBuffer& message, const Destination& destination) {
  ASSIGN_OR_RETURN(const std::vector<grpc::Slice> slices, SlicesOf(message));
  absl::StatusOr<Parts> parts = TakeApart(SliceReader(slices));
  if (!parts.ok()) return BadResponse(parts.status().message());

  const std::optional<DType> dtype = FromProto(parts->tensor.data_type());
  if (!dtype) return BadResponse(absl::StrCat("data type ", static_cast<int>(parts->tensor.data_type())));
  if (parts->tensor.shape_size() > kMaxRank) {
    return BadResponse(absl::StrCat("rank ", parts->tensor.shape_size()));
  }
  ConstArray view{.dtype = *dtype};
  for (std::int64_t size : parts->tensor.shape()) view.shape.Append(size);
  const absl::StatusOr<std::size_t> bytes = ByteSize(view);
  if (!bytes.ok()) return BadResponse(bytes.status().message());
  const std::int64_t stride = parts->tensor.row_stride();
  if (stride != 0 && (view.shape.rank == 0 || stride != view.shape[view.shape.rank - 1])) {
    return BadResponse(absl::StrCat("a row stride of ", stride));
  }
  if (parts->payload.remaining() != *bytes) {
    return BadResponse(absl::StrCat(parts->payload.remaining(), " bytes of elements instead of ", *bytes));
  }

  Result result;
  if (destination.data != nullptr) {
    if (destination.bytes < *bytes) return TooSmall(*bytes, destination.bytes);
    result.array = Array::Over(*dtype, view.shape, destination.data, *bytes);
  } else {
    ASSIGN_OR_RETURN(result.array, Array::Allocate(*dtype, view.shape, *bytes));
  }
  parts->payload.CopyTo(result.array.data());
  result.execution = std::move(parts->execution);
  return result;
}

absl::StatusOr<std::size_t> DecodeEcho(const grpc::ByteBuffer& message, const Destination& destination) {
  ASSIGN_OR_RETURN(const std::vector<grpc::Slice> slices, SlicesOf(message));
  SliceReader reader(slices), payload;
  Field field;
  while (true) {
    const absl::StatusOr<bool> more = NextField(reader, field);
    if (!more.ok()) return BadResponse(more.status().message());
    if (!*more) break;
    if (field.number == v1::EchoResponse::kPayloadFieldNumber && field.type == WireType::kBytes) {
      payload = field.contents;
    }
  }
  if (payload.remaining() > destination.bytes) return TooSmall(payload.remaining(), destination.bytes);
  payload.CopyTo(destination.data);
  return payload.remaining();
}

}  // namespace warpline::client
