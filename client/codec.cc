#include "client/codec.h"

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

using v1::NamedTensor;
using v1::Tensor;

absl::Status Misnamed(std::string_view name, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(name), ": ", status.message()));
}

// Everything of a Tensor but its elements.
std::string TensorHead(const ConstArray& array) {
  MessageWriter head;
  head.AppendVarint(Tensor::kDataTypeFieldNumber, ToProto(array.dtype));
  head.AppendPacked(Tensor::kShapeFieldNumber,
                    std::span(array.shape.dims.data(), static_cast<std::size_t>(array.shape.rank)));
  if (array.row_stride != 0) {
    head.AppendVarint(Tensor::kRowStrideFieldNumber, static_cast<std::uint64_t>(array.row_stride));
  }
  return head.head();
}

// Encodes one operand; `name` is the field's, for errors.
absl::Status AppendTensor(MessageWriter& message, std::uint32_t field, const char* name,
                          const ConstArray& array) {
  const absl::StatusOr<std::size_t> bytes = ByteSize(array);
  if (!bytes.ok()) return Misnamed(name, bytes.status());
  message.AppendMessage(field, TensorHead(array), Tensor::kInlineFieldNumber,
                        {array.data, *bytes, array.owner});
  return absl::OkStatus();
}

absl::Status AppendNamedTensor(MessageWriter& message, std::uint32_t field, const std::string& name,
                               const ConstArray& array) {
  const absl::StatusOr<std::size_t> bytes = ByteSize(array);
  if (!bytes.ok()) return Misnamed(name, bytes.status());
  const std::string head = TensorHead(array);
  const Payload payload{array.data, *bytes, array.owner};
  MessageWriter name_field;
  name_field.AppendBytes(NamedTensor::kNameFieldNumber, name);
  message.BeginMessage(field,
                       name_field.size() + MessageWriter::MessageSize(NamedTensor::kTensorFieldNumber, head,
                                                                      Tensor::kInlineFieldNumber, payload));
  message.AppendBytes(NamedTensor::kNameFieldNumber, name);
  message.AppendMessage(NamedTensor::kTensorFieldNumber, head, Tensor::kInlineFieldNumber, payload);
  return absl::OkStatus();
}

void AppendInts(MessageWriter& message, std::uint32_t field, const std::vector<int>& values) {
  message.AppendPacked(field, std::vector<std::int64_t>(values.begin(), values.end()));
}

void AppendVariant(MessageWriter& message, std::uint32_t field, const std::string& variant) {
  if (!variant.empty()) message.AppendBytes(field, variant);
}

void AppendDataType(MessageWriter& message, std::uint32_t field, std::optional<DType> dtype) {
  if (dtype) message.AppendVarint(field, ToProto(*dtype));
}

absl::Status BadResponse(absl::string_view why) {
  return absl::InternalError(absl::StrCat("the server's response is not valid: ", why));
}

// An array as it arrives. `payload` refers to the slices.
struct ArrivedTensor {
  Tensor tensor;  // without its elements
  SliceReader payload;
};

// Sub-messages that come in pieces are merged, and of a repeated singular field the last wins, as in
// protobuf: parsing the concatenation does both. `rest` has what came before, and gets what comes now.
absl::Status CollectTensor(SliceReader contents, std::string& rest, SliceReader& payload) {
  Field field;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, NextField(contents, field));
    if (!more) return absl::OkStatus();
    if (field.number == Tensor::kInlineFieldNumber && field.type == WireType::kBytes) {
      payload = field.contents;
    } else {
      field.raw.AppendTo(rest);
    }
  }
}

// A response that consists of tensors and an execution, by field numbers.
struct Parts {
  std::vector<SliceReader> tensors;
  v1::Execution execution;
};

absl::StatusOr<Parts> TakeApart(SliceReader message, std::uint32_t tensor_field,
                                std::uint32_t execution_field) {
  Parts parts;
  std::string execution;
  Field field;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, NextField(message, field));
    if (!more) break;
    if (field.type != WireType::kBytes) continue;
    if (field.number == execution_field) field.contents.AppendTo(execution);
    if (field.number == tensor_field) parts.tensors.push_back(field.contents);
  }
  if (!parts.execution.ParseFromString(execution)) {
    return absl::InternalError("execution is not an Execution");
  }
  return parts;
}

absl::StatusOr<ArrivedTensor> ToTensor(std::span<const SliceReader> pieces) {
  ArrivedTensor arrived;
  std::string rest;
  for (const SliceReader& piece : pieces) RETURN_IF_ERROR(CollectTensor(piece, rest, arrived.payload));
  if (!arrived.tensor.ParseFromString(rest)) return absl::InternalError("not a Tensor");
  return arrived;
}

struct ArrivedOutput {
  std::string name;
  ArrivedTensor tensor;
};

absl::StatusOr<ArrivedOutput> ToOutput(SliceReader contents) {
  std::vector<SliceReader> pieces;
  std::string rest;
  Field field;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, NextField(contents, field));
    if (!more) break;
    if (field.number == NamedTensor::kTensorFieldNumber && field.type == WireType::kBytes) {
      pieces.push_back(field.contents);
    } else {
      field.raw.AppendTo(rest);
    }
  }
  NamedTensor named;
  if (!named.ParseFromString(rest)) return absl::InternalError("not a NamedTensor");
  ASSIGN_OR_RETURN(ArrivedTensor tensor, ToTensor(pieces));
  return ArrivedOutput{named.name(), std::move(tensor)};
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

// Checks the array and copies its elements to their place.
absl::StatusOr<Array> Store(const ArrivedTensor& arrived, const Destination& destination) {
  const Tensor& tensor = arrived.tensor;
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
  if (arrived.payload.remaining() != *bytes) {
    return BadResponse(absl::StrCat(arrived.payload.remaining(), " bytes of elements instead of ", *bytes));
  }
  Array array;
  if (destination.data != nullptr) {
    if (destination.bytes < *bytes) return TooSmall(*bytes, destination.bytes);
    array = Array::Over(*dtype, view.shape, destination.data, *bytes);
  } else {
    ASSIGN_OR_RETURN(array, Array::Allocate(*dtype, view.shape, *bytes));
  }
  arrived.payload.CopyTo(array.data());
  return array;
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
  if (args.bias) RETURN_IF_ERROR(AppendTensor(message, Request::kBiasFieldNumber, "bias", *args.bias));
  if (args.activation != v1::ACTIVATION_UNSPECIFIED) {
    message.AppendVarint(Request::kActivationFieldNumber, args.activation);
  }
  AppendDataType(message, Request::kOutDataTypeFieldNumber, args.out_data_type);
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
  AppendDataType(message, Request::kOutDataTypeFieldNumber, args.out_data_type);
  // Sign-extended, as protobuf has it: a negative one is the server's to refuse.
  if (args.ddof != 0) {
    message.AppendVarint(Request::kDdofFieldNumber,
                         static_cast<std::uint64_t>(static_cast<std::int64_t>(args.ddof)));
  }
  return std::move(message).Finish();
}

absl::StatusOr<OutgoingMessage> Encode(const RunArgs& args) {
  using Request = v1::RunRequest;
  MessageWriter message;
  message.AppendBytes(Request::kProgramFieldNumber, args.program.SerializeAsString());
  for (const auto& [name, array] : args.inputs) {
    RETURN_IF_ERROR(AppendNamedTensor(message, Request::kInputsFieldNumber, name, array));
  }
  return std::move(message).Finish();
}

absl::StatusOr<OutgoingMessage> EncodeEcho(const Payload& payload) {
  MessageWriter message;
  message.AppendPayload(v1::EchoRequest::kPayloadFieldNumber, payload);
  return std::move(message).Finish();
}

absl::StatusOr<Result> DecodeResult(const grpc::ByteBuffer& message, const Destination& destination) {
  using Response = v1::TransposeResponse;
  ASSIGN_OR_RETURN(const std::vector<grpc::Slice> slices, SlicesOf(message));
  absl::StatusOr<Parts> parts =
      TakeApart(SliceReader(slices), Response::kYFieldNumber, Response::kExecutionFieldNumber);
  if (!parts.ok()) return BadResponse(parts.status().message());
  const absl::StatusOr<ArrivedTensor> tensor = ToTensor(parts->tensors);
  if (!tensor.ok()) return BadResponse(tensor.status().message());
  ASSIGN_OR_RETURN(Array array, Store(*tensor, destination));
  return Result{std::move(array), std::move(parts->execution)};
}

absl::StatusOr<RunResult> DecodeRunResult(const grpc::ByteBuffer& message,
                                          std::span<const std::string> outputs,
                                          std::span<const Destination> destinations) {
  using Response = v1::RunResponse;
  ASSIGN_OR_RETURN(const std::vector<grpc::Slice> slices, SlicesOf(message));
  absl::StatusOr<Parts> parts =
      TakeApart(SliceReader(slices), Response::kOutputsFieldNumber, Response::kExecutionFieldNumber);
  if (!parts.ok()) return BadResponse(parts.status().message());
  if (parts->tensors.size() != outputs.size()) {
    return BadResponse(absl::StrCat(parts->tensors.size(), " outputs instead of ", outputs.size()));
  }
  RunResult result;
  result.execution = std::move(parts->execution);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const absl::StatusOr<ArrivedOutput> output = ToOutput(parts->tensors[i]);
    if (!output.ok()) return BadResponse(output.status().message());
    if (output->name != outputs[i]) {
      return BadResponse(
          absl::StrCat("output ", i, " is \"", output->name, "\" instead of \"", outputs[i], "\""));
    }
    ASSIGN_OR_RETURN(Array array,
                     Store(output->tensor, i < destinations.size() ? destinations[i] : Destination{}));
    result.outputs.emplace_back(output->name, std::move(array));
  }
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
