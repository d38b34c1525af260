#include "proto/wire/tensor_field.h"

#include <cstdint>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace warpline {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

const google::protobuf::FieldDescriptor* InlineField() {
  return v1::Tensor::descriptor()->FindFieldByNumber(v1::Tensor::kInlineFieldNumber);
}

void AppendFieldHead(std::string& to, int field, std::size_t length) {
  constexpr std::size_t kTagBytesMax = 5, kLengthBytesMax = 10;
  std::uint8_t head[kTagBytesMax + kLengthBytesMax];
  const std::uint32_t tag = WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  std::uint8_t* end = CodedOutputStream::WriteTagToArray(tag, head);
  end = CodedOutputStream::WriteVarint64ToArray(length, end);
  to.append(reinterpret_cast<const char*>(head), static_cast<std::size_t>(end - head));
}

std::string TensorHead(int field, const v1::Tensor& tensor, std::size_t bytes) {
  std::string elements;
  AppendFieldHead(elements, v1::Tensor::kInlineFieldNumber, bytes);
  std::string head;
  AppendFieldHead(head, field, tensor.ByteSizeLong() + elements.size() + bytes);
  static_cast<void>(tensor.AppendToString(&head));
  return head + elements;
}

std::string NamedTensorHead(int field, const std::string& name, const v1::Tensor& tensor, std::size_t bytes) {
  std::string content;
  AppendFieldHead(content, v1::NamedTensor::kNameFieldNumber, name.size());
  content += name;
  content += TensorHead(v1::NamedTensor::kTensorFieldNumber, tensor, bytes);
  std::string head;
  AppendFieldHead(head, field, content.size() + bytes);
  return head + content;
}

}  // namespace warpline
