#include <array>
#include <cstdint>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
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

// The tag and the length of a field whose content comes next.
void AppendLengthDelimited(std::string& to, int field, std::size_t length) {
  constexpr std::uint32_t kLengthDelimited = 2;
  google::protobuf::io::StringOutputStream stream(&to);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.WriteTag(static_cast<std::uint32_t>(field) << 3 | kLengthDelimited);
  out.WriteVarint64(length);
}

// A field that holds a Tensor, up to its elements, which come next.
std::string TensorField(int field, const TensorSpec& spec) {
  v1::Tensor tensor;  // all of it but the elements
  tensor.set_data_type(ToProto(spec.dtype));
  for (int i = 0; i < spec.shape.rank; ++i) tensor.add_shape(spec.shape[i]);
  std::string elements;  // their tag and length
  AppendLengthDelimited(elements, v1::Tensor::kInlineFieldNumber, spec.bytes);
  std::string header;
  AppendLengthDelimited(header, field, tensor.ByteSizeLong() + elements.size() + spec.bytes);
  tensor.AppendToString(&header);
  return header + elements;
}

std::string ExecutionField(const v1::Execution& execution) {
  std::string header;
  AppendLengthDelimited(header, kExecutionField, execution.ByteSizeLong());
  execution.AppendToString(&header);
  return header;
}

}  // namespace

std::string ResponseHeader(const TensorSpec& output, const v1::Execution& execution) {
  return ExecutionField(execution) + TensorField(kTensorField, output);
}

std::vector<std::string> RunResponseHeaders(std::span<const PlannedOutput> outputs,
                                            const v1::Execution& execution) {
  std::vector<std::string> headers;
  for (const PlannedOutput& output : outputs) {
    std::string content;
    AppendLengthDelimited(content, v1::NamedTensor::kNameFieldNumber, output.name.size());
    content += output.name;
    content += TensorField(v1::NamedTensor::kTensorFieldNumber, output.spec);
    std::string& header = headers.emplace_back();
    if (headers.size() == 1) header = ExecutionField(execution);
    AppendLengthDelimited(header, v1::RunResponse::kOutputsFieldNumber, content.size() + output.spec.bytes);
    header += content;
  }
  return headers;
}

}  // namespace warpline
