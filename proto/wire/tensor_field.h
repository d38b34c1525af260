// Tensors on the wire, whose elements are sent from where they lie and read from where they arrive. All else
// of a message is written and parsed by protobuf.
#ifndef WARPLINE_PROTO_WIRE_TENSOR_FIELD_H_
#define WARPLINE_PROTO_WIRE_TENSOR_FIELD_H_

#include <cstddef>
#include <string>

#include "warpline/v1/warpline.pb.h"

namespace warpline {

// Tensor.inline: the field whose contents are payloads.
const google::protobuf::FieldDescriptor* InlineField();

// Appends the tag and the length of a field of `length` bytes, which come next.
void AppendFieldHead(std::string& to, int field, std::size_t length);

// A field that holds a Tensor with `bytes` bytes of elements, up to these elements, which come next. `tensor`
// is all of it but the elements.
std::string TensorHead(int field, const v1::Tensor& tensor, std::size_t bytes);

// The same for a field that holds a NamedTensor.
std::string NamedTensorHead(int field, const std::string& name, const v1::Tensor& tensor, std::size_t bytes);

}  // namespace warpline

#endif  // WARPLINE_PROTO_WIRE_TENSOR_FIELD_H_
