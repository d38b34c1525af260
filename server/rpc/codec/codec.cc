#include "server/rpc/codec/codec.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/status_macros.h"
#include "proto/wire/tensor_field.h"

namespace warpline {
namespace {

template <typename RequestProto>
absl::StatusOr<Conversion> Decode(const std::string& header, std::span<const PayloadRange> payloads,
                                  const Limits& limits) {
  RequestProto request;
  if (!request.ParseFromString(header)) {
    return absl::InvalidArgumentError("the request is not a valid protobuf message of its type");
  }
  return FromProto(request, payloads, limits);
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
          PayloadSchema::For(RequestProto::descriptor(), InlineField()),
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
  std::string key;
  key.reserve(1 + message.header.size() + message.payloads.size() * sizeof(std::uint64_t));
  key.push_back(static_cast<char>(kind));
  // First what has the same size for the same header, so that nothing can be taken for something else.
  for (const PayloadRange& payload : message.payloads) {
    const std::uint64_t length = payload.length;
    key.append(reinterpret_cast<const char*>(&length), sizeof(length));
  }
  key += message.header;
  return key;
}

absl::StatusOr<DecodedPlan> DecodePlan(const Codec& codec, const ScannedMessage& message,
                                       const Limits& limits) {
  ASSIGN_OR_RETURN(Conversion conversion, codec.decode(message.header, message.payloads, limits));
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
  decoded.reproducible = conversion.reproducible;
  decoded.step_names = std::move(conversion.step_names);
  return decoded;
}

}  // namespace warpline
