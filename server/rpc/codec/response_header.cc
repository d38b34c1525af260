#include "proto/rules/tensor_rules.h"
#include "proto/wire/tensor_field.h"
#include "server/rpc/codec/convert.h"

namespace warpline {
namespace {

// The field numbers are the same in all responses of one operation.
constexpr int kTensorField = v1::TransposeResponse::kYFieldNumber;
constexpr int kExecutionField = v1::TransposeResponse::kExecutionFieldNumber;
static_assert(kTensorField == v1::GemmResponse::kDFieldNumber);
static_assert(kTensorField == v1::ReduceResponse::kYFieldNumber);
static_assert(kExecutionField == v1::GemmResponse::kExecutionFieldNumber);
static_assert(kExecutionField == v1::ReduceResponse::kExecutionFieldNumber);
static_assert(kExecutionField == v1::RunResponse::kExecutionFieldNumber);

// Returns a Tensor without its elements.
v1::Tensor WithoutElements(const TensorSpec& spec, v1::Tensor tensor = {}) {
  tensor.set_data_type(ToProto(spec.dtype));
  for (int i = 0; i < spec.shape.rank; ++i) tensor.add_shape(spec.shape[i]);
  return tensor;
}

void AppendMessage(std::string& to, int field, const google::protobuf::MessageLite& message) {
  AppendFieldHead(to, field, message.ByteSizeLong());
  static_cast<void>(message.AppendToString(&to));
}

}  // namespace

std::string ResponseHeader(const ResponseParts& parts) {
  const PlannedOutput& output = parts.outputs.front();
  std::string header;
  AppendMessage(header, kExecutionField, parts.execution);
  if (output.is_inline()) {
    return header + TensorHead(kTensorField, WithoutElements(output.spec), output.spec.bytes);
  }
  AppendMessage(header, kTensorField, WithoutElements(output.spec, parts.placed.front()));
  return header;
}

std::vector<std::string> RunResponseHeaders(const ResponseParts& parts) {
  std::vector<std::string> headers;
  std::span<const v1::Tensor> placed = parts.placed;
  for (const PlannedOutput& output : parts.outputs) {
    std::string& header = headers.emplace_back();
    if (headers.size() == 1) AppendMessage(header, kExecutionField, parts.execution);
    if (output.is_inline()) {
      header += NamedTensorHead(v1::RunResponse::kOutputsFieldNumber, output.name,
                                WithoutElements(output.spec), output.spec.bytes);
      continue;
    }
    v1::NamedTensor named;
    named.set_name(output.name);
    *named.mutable_tensor() = WithoutElements(output.spec, placed.front());
    placed = placed.subspan(1);
    AppendMessage(header, v1::RunResponse::kOutputsFieldNumber, named);
  }
  return headers;
}

}  // namespace warpline
