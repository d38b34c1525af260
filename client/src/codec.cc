#include "client/src/codec.h"

#include <optional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/src/arrived.h"
#include "kernels/field_error.h"
#include "kernels/status_macros.h"
#include "proto/wire/scanner.h"
#include "proto/wire/tensor_field.h"

namespace warpline::client {
namespace {

using v1::NamedTensor;
using v1::Tensor;

absl::Status Misnamed(std::string_view name, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(std::string(name), ": ", status.message()));
}

// Returns a Tensor message with everything but the elements.
Tensor WithoutElements(const ConstArray& array) {
  Tensor tensor;
  tensor.set_data_type(ToProto(array.dtype));
  for (int i = 0; i < array.shape.rank; ++i) tensor.add_shape(array.shape[i]);
  tensor.set_row_stride(array.row_stride);
  return tensor;
}

// How one operand is written.
struct Written {
  Tensor tensor;
  // Set if the elements follow the message. Otherwise the message itself says where they are.
  std::optional<Payload> payload;
};

// `name` is the name of the field, for errors.
absl::StatusOr<Written> Write(const std::string& name, const Operand& operand, const SharedPlaces& shared) {
  Written written;
  if (!operand.resident.empty()) {
    // The length of a shared result follows from the shape, so the server must check the shape.
    const bool results_are_shared = !shared.results.empty();
    if (results_are_shared && operand.shape.rank > 0) written.tensor = WithoutElements(operand.AsArray());
    written.tensor.clear_row_stride();
    written.tensor.mutable_resident()->set_id(operand.resident);
    return written;
  }
  const ConstArray array = operand.AsArray();
  const absl::StatusOr<std::size_t> bytes = ByteSize(array);
  if (!bytes.ok()) return Misnamed(name, bytes.status());
  written.tensor = WithoutElements(array);
  if (operand.upload.has_value()) {
    written.tensor.clear_row_stride();  // an upload is sent without padding
    written.tensor.mutable_upload()->set_number(*operand.upload);
    return written;
  }
  if (shared.find != nullptr && *bytes > 0) {
    absl::StatusOr<std::optional<v1::RegionSlice>> slice = shared.find(array.data, *bytes);
    if (!slice.ok()) return Misnamed(name, slice.status());
    if (*slice) {
      *written.tensor.mutable_region() = **std::move(slice);
      return written;
    }
  }
  written.payload = {array.data, *bytes, array.owner};
  return written;
}

void AppendMessage(MessageWriter& message, int field, const google::protobuf::Message& content) {
  std::string encoded;
  AppendFieldHead(encoded, field, content.ByteSizeLong());
  static_cast<void>(content.AppendToString(&encoded));
  message.Append(encoded);
}

absl::Status AppendNamedTensor(MessageWriter& message, int field, const std::string& name,
                               const Operand& operand, const SharedPlaces& shared) {
  ASSIGN_OR_RETURN(Written written, Write(name, operand, shared));
  if (!written.payload) {
    NamedTensor tensor;
    tensor.set_name(name);
    *tensor.mutable_tensor() = std::move(written.tensor);
    AppendMessage(message, field, tensor);
    return absl::OkStatus();
  }
  message.Append(NamedTensorHead(field, name, written.tensor, written.payload->bytes));
  message.AppendPayload(*written.payload);
  return absl::OkStatus();
}

// Adds the destination of a result, unless the result comes back in the response. `shared` is null if the
// result is not in shared memory.
absl::Status AddSink(v1::RunRequest& request, const std::string& output, const Destination& destination,
                     const SharedResult* shared) {
  if (shared != nullptr) {
    v1::Sink& sink = *request.mutable_options()->add_sinks();
    sink.set_output(output);
    *sink.mutable_region() = shared->slice;
    return absl::OkStatus();
  }
  if (!destination.keep) return absl::OkStatus();
  if (destination.data != nullptr || destination.region != nullptr) {
    return absl::InvalidArgumentError(
        "the destination has memory, but what is kept on the server does not come back");
  }
  v1::Sink& sink = *request.mutable_options()->add_sinks();
  sink.set_output(output);
  if (destination.streamed) {
    sink.mutable_stream();
    return absl::OkStatus();
  }
  sink.mutable_resident()->set_ttl_seconds(absl::ToDoubleSeconds(*destination.keep));
  return absl::OkStatus();
}

absl::Status SetOptions(const RunArgs& args, const SentOptions& options, v1::RunRequest& request) {
  if (options.free_after.size() > kMaxFreeAfter) {
    return FieldError("options.free_after",
                      absl::StrCat(options.free_after.size(), " ids; the limit is ", kMaxFreeAfter));
  }
  if (args.reproducible) request.mutable_options()->set_reproducible(true);
  if (options.report) request.mutable_options()->set_report(true);
  for (const std::string& id : options.free_after) request.mutable_options()->add_free_after(id);
  return absl::OkStatus();
}

// The decoded form of one result.
struct Stored {
  Array array;
  std::optional<client::Tensor> tensor;
};

// Checks the result, and copies its elements to their destination or makes a handle for it. `shared`: as for
// AddSink.
absl::StatusOr<Stored> Store(const Arrived<v1::RunResponse>& response, const Tensor& tensor,
                             const Destination& destination, const MakeTensor& make_tensor,
                             const SharedResult* shared) {
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
  if (tensor.has_region() != (shared != nullptr)) {
    return BadResponse(shared == nullptr ? "the result is in shared memory"
                                         : "the result is not in shared memory");
  }
  if (shared != nullptr) {
    const Array& array = shared->array;
    if (array.dtype() != *dtype || array.shape() != view.shape) {
      return BadResponse(
          absl::StrCat("a result of ", *bytes, " bytes in the place of one of ", array.bytes()));
    }
    return Stored{.array = array, .tensor = {}};
  }
  if (tensor.has_resident() != destination.keep.has_value()) {
    return BadResponse(destination.keep ? "the result is not on the server" : "the result is on the server");
  }
  Stored stored;
  if (tensor.has_resident()) {
    if (tensor.resident().id().empty()) return BadResponse("a resident tensor without an id");
    stored.tensor = make_tensor({.id = tensor.resident().id(),
                                 .dtype = *dtype,
                                 .shape = view.shape,
                                 .device = response.message.execution().device(),
                                 .bytes = *bytes,
                                 .ttl = absl::Seconds(tensor.resident().ttl_seconds())});
    return stored;
  }
  ASSIGN_OR_RETURN(const PayloadRange elements, response.PayloadOf(tensor.inline_()));
  if (elements.length != *bytes) {
    return BadResponse(absl::StrCat(elements.length, " bytes of elements instead of ", *bytes));
  }
  ASSIGN_OR_RETURN(stored.array, Array::For(*dtype, view.shape, *bytes, destination));
  response.CopyTo(stored.array.data(), elements);
  return stored;
}

}  // namespace

absl::StatusOr<OutgoingMessage> Encode(const RunArgs& args, const SharedPlaces& shared,
                                       const SentOptions& options) {
  using Request = v1::RunRequest;
  std::string program;
  AppendFieldHead(program, Request::kProgramFieldNumber, args.program.ByteSizeLong());
  static_cast<void>(args.program.AppendToString(&program));
  v1::RunRequest rest;
  RETURN_IF_ERROR(SetOptions(args, options, rest));
  const int outputs = args.program.outputs_size();
  for (std::size_t i = 0; i < args.destinations.size() && static_cast<int>(i) < outputs; ++i) {
    RETURN_IF_ERROR(
        AddSink(rest, args.program.outputs(static_cast<int>(i)), args.destinations[i], shared.result(i)));
  }
  MessageWriter message;
  message.Append(program);
  for (const auto& [name, operand] : args.inputs) {
    RETURN_IF_ERROR(AppendNamedTensor(message, Request::kInputsFieldNumber, name, operand, shared));
  }
  message.Append(rest.SerializeAsString());
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

absl::StatusOr<RunResult> DecodeRunResult(const grpc::ByteBuffer& message,
                                          std::span<const std::string> outputs,
                                          std::span<const Destination> destinations,
                                          const MakeTensor& make_tensor, const SharedPlaces& shared) {
  ASSIGN_OR_RETURN(Arrived<v1::RunResponse> response, ReadResponse<v1::RunResponse>(message, InlineField()));
  const auto& arrived = response.message.outputs();
  if (static_cast<std::size_t>(arrived.size()) != outputs.size()) {
    return BadResponse(absl::StrCat(arrived.size(), " outputs instead of ", outputs.size()));
  }
  RunResult result;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const NamedTensor& output = arrived[static_cast<int>(i)];
    if (output.name() != outputs[i]) {
      return BadResponse(
          absl::StrCat("output ", i, " is \"", output.name(), "\" instead of \"", outputs[i], "\""));
    }
    ASSIGN_OR_RETURN(Stored stored, Store(response, output.tensor(),
                                          i < destinations.size() ? destinations[i] : Destination{},
                                          make_tensor, shared.result(i)));
    result.outputs.emplace_back(output.name(), std::move(stored.array));
    result.tensors.push_back(std::move(stored.tensor));
  }
  result.execution = std::move(*response.message.mutable_execution());
  return result;
}

absl::StatusOr<std::size_t> DecodeEcho(const grpc::ByteBuffer& message, const Destination& destination) {
  using Response = v1::EchoResponse;
  const auto* field = Response::descriptor()->FindFieldByNumber(Response::kPayloadFieldNumber);
  ASSIGN_OR_RETURN(const Arrived<Response> response, ReadResponse<Response>(message, field));
  ASSIGN_OR_RETURN(const PayloadRange payload, response.PayloadOf(response.message.payload()));
  if (payload.length > destination.bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the echo has ", payload.length, " bytes; the destination has ", destination.bytes));
  }
  response.CopyTo(destination.data, payload);
  return payload.length;
}

}  // namespace warpline::client
