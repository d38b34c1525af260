#include "proto/wire/tensor_field.h"
#include "server/rpc/codec/convert.h"

namespace warpline {
namespace {

// The same in every response of one operation.
constexpr int kTensorField = v1::TransposeResponse::kYFieldNumber;
constexpr int kExecutionField = v1::TransposeResponse::kExecutionFieldNumber;
static_assert(kTensorField == v1::GemmResponse::kDFieldNumber);
static_assert(kTensorField == v1::ReduceResponse::kYFieldNumber);
static_assert(kExecutionField == v1::GemmResponse::kExecutionFieldNumber);
static_assert(kExecutionField == v1::ReduceResponse::kExecutionFieldNumber);
static_assert(kExecutionField == v1::RunResponse::kExecutionFieldNumber);

// Everything of a Tensor but its elements.
v1::Tensor WithoutElements(const TensorSpec& spec) {
  v1::Tensor tensor;
  tensor.set_data_type(ToProto(spec.dtype));
  for (int i = 0; i < spec.shape.rank; ++i) tensor.add_shape(spec.shape[i]);
  return tensor;
}

std::string ExecutionField(const v1::Execution& execution) {
  std::string header;
  AppendFieldHead(header, kExecutionField, execution.ByteSizeLong());
  execution.AppendToString(&header);
  return header;
}

}  // namespace

std::string ResponseHeader(const TensorSpec& output, const v1::Execution& execution) {
  return ExecutionField(execution) + TensorHead(kTensorField, WithoutElements(output), output.bytes);
}

std::vector<std::string> RunResponseHeaders(std::span<const PlannedOutput> outputs,
                                            const v1::Execution& execution) {
  std::vector<std::string> headers;
  for (const PlannedOutput& output : outputs) {
    std::string& header = headers.emplace_back();
    if (headers.size() == 1) header = ExecutionField(execution);
    header += NamedTensorHead(v1::RunResponse::kOutputsFieldNumber, output.name, WithoutElements(output.spec),
                              output.spec.bytes);
  }
  return headers;
}

}  // namespace warpline
