// Tensors on the wire. Their elements are sent and received without an intermediate copy. protobuf writes and
// parses the rest of a message.
#ifndef WARPLINE_PROTO_WIRE_TENSOR_FIELD_H_
#define WARPLINE_PROTO_WIRE_TENSOR_FIELD_H_

#include <cstddef>
#include <string>

#include "warpline/v1/warpline.pb.h"

namespace warpline {

// Returns Tensor.inline, the field that holds the payloads.
const google::protobuf::FieldDescriptor* InlineField();

// Appends the tag and the length of a field of `length` bytes. The caller must then append these bytes.
void AppendFieldHead(std::string& to, int field, std::size_t length);

// Returns the start of a field that holds a Tensor with `bytes` bytes of elements. The caller must then
// append the elements. `tensor` is the message without its elements.
std::string TensorHead(int field, const v1::Tensor& tensor, std::size_t bytes);

// Same for a field that holds a NamedTensor.
std::string NamedTensorHead(int field, const std::string& name, const v1::Tensor& tensor, std::size_t bytes);

}  // namespace warpline

#endif  // WARPLINE_PROTO_WIRE_TENSOR_FIELD_H_
