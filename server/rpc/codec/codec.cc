#include "server/rpc/codec/codec.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/status_macros.h"
#include "proto/wire/tensor_field.h"
#include "server/rpc/codec/scalar_class.h"

namespace warpline {
namespace {

template <typename RequestProto>
absl::StatusOr<Conversion> Decode(const ScannedMessage& message, const Limits& limits) {
  RequestProto request;
  if (!request.ParseFromString(message.header)) {
    return absl::InvalidArgumentError("the request is not a valid protobuf message of its type");
  }
  return FromProto(request, {message.payloads, message.scalars}, limits);
}

// The fields whose values reach kernels as StepScalars. A plan does not depend on them but for their class.
std::vector<const google::protobuf::FieldDescriptor*> ScalarFields() {
  const auto field = [](const google::protobuf::Descriptor* message, int number) {
    return message->FindFieldByNumber(number);
  };
  return {field(v1::GemmRequest::descriptor(), v1::GemmRequest::kAlphaFieldNumber),
          field(v1::GemmRequest::descriptor(), v1::GemmRequest::kBetaFieldNumber),
          field(v1::GemmStep::descriptor(), v1::GemmStep::kAlphaFieldNumber),
          field(v1::GemmStep::descriptor(), v1::GemmStep::kBetaFieldNumber),
          field(v1::ScaleStep::descriptor(), v1::ScaleStep::kFactorFieldNumber)};
}

std::vector<std::string> EncodeOne(std::span<const PlannedOutput> outputs, const v1::Execution& execution) {
  return {ResponseHeader(outputs.front().spec, execution)};
}

template <typename RequestProto>
Codec MakeCodec(RequestKind kind, std::string_view method, std::string_view whole,
                decltype(Codec::encode) encode) {
  return {kind,
          method,
          whole,
          ScanSchema::For(RequestProto::descriptor(), InlineField(), ScalarFields()),
          &Decode<RequestProto>,
          encode};
}

// The name of the step that writes it; empty where steps have none.
std::string NameOfOutput(const Program& program, const std::vector<std::string>& step_names, int tensor) {
  for (std::size_t i = 0; i < step_names.size(); ++i) {
    if (program.steps[i].output == tensor) return step_names[i];
  }
  return "";
}

}  // namespace

std::vector<Codec> KernelCodecs() {
  return {MakeCodec<v1::TransposeRequest>(RequestKind::kTranspose, "Transpose", "x", &EncodeOne),
          // Of all operands of a product, the first.
          MakeCodec<v1::GemmRequest>(RequestKind::kGemm, "Gemm", "a", &EncodeOne),
          MakeCodec<v1::ReduceRequest>(RequestKind::kReduce, "Reduce", "x", &EncodeOne),
          MakeCodec<v1::RunRequest>(RequestKind::kRun, "Run", "program", &RunResponseHeaders)};
}

std::string PlanKey(RequestKind kind, const ScannedMessage& message) {
  const std::size_t payloads = message.payloads.size(), scalars = message.scalars.size();
  std::string key;
  key.reserve(1 + (1 + payloads) * sizeof(std::uint64_t) + scalars + message.header.size());
  const auto append = [&key](std::uint64_t number) {
    key.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  key.push_back(static_cast<char>(kind));
  // The counts come first: without them the lengths of one request could be read as the header of another. A
  // header has room for far less than 2^32 of either.
  append(std::uint64_t{payloads} << 32 | scalars);
  for (const PayloadRange& payload : message.payloads) append(payload.length);
  for (const double scalar : message.scalars) key.push_back(static_cast<char>(ClassOf(scalar)));
  key += message.header;
  return key;
}

absl::StatusOr<DecodedPlan> DecodePlan(const Codec& codec, const ScannedMessage& message,
                                       const Limits& limits) {
  ASSIGN_OR_RETURN(Conversion conversion, codec.decode(message, limits));
  DecodedPlan decoded;
  decoded.plan = MakePlan(std::move(conversion.program));
  for (PlannedOutput& output : decoded.plan.outputs) {
    const std::size_t index = static_cast<std::size_t>(&output - decoded.plan.outputs.data());
    output.name =
        NameOfOutput(decoded.plan.program, conversion.step_names, decoded.plan.program.outputs[index]);
  }
  for (const PayloadRange& range : conversion.payloads) {
    const auto found = std::find(message.payloads.begin(), message.payloads.end(), range);
    decoded.plan.payloads.push_back(
        range.length == 0 ? Plan::kNoPayload : static_cast<std::size_t>(found - message.payloads.begin()));
  }
  decoded.plan.scalars = std::move(conversion.scalars);
  decoded.reproducible = conversion.reproducible;
  decoded.step_names = std::move(conversion.step_names);
  return decoded;
}

}  // namespace warpline
