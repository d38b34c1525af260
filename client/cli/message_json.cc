#include "client/cli/message_json.h"

#include <google/protobuf/descriptor.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace warpline::client {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using nlohmann::ordered_json;

// "f32" for DATA_TYPE_F32 of DataType: the first value of an enumeration, such as DATA_TYPE_UNSPECIFIED, has
// its prefix.
std::string NameOf(const EnumValueDescriptor& value) {
  std::string prefix(value.type()->value(0)->name());
  prefix.resize(prefix.rfind("UNSPECIFIED") == std::string::npos ? 0 : prefix.rfind("UNSPECIFIED"));
  std::string name(absl::StripPrefix(value.name(), prefix));
  absl::AsciiStrToLower(&name);
  return name;
}

// An element of a repeated field, or without an index the value of another.
ordered_json ValueOf(const Message& message, const FieldDescriptor& field, int index) {
  const google::protobuf::Reflection& values = *message.GetReflection();
  const bool repeated = index >= 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return repeated ? values.GetRepeatedInt32(message, &field, index) : values.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return repeated ? values.GetRepeatedInt64(message, &field, index) : values.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return repeated ? values.GetRepeatedUInt32(message, &field, index) : values.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return repeated ? values.GetRepeatedUInt64(message, &field, index) : values.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return repeated ? values.GetRepeatedDouble(message, &field, index) : values.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return repeated ? values.GetRepeatedFloat(message, &field, index) : values.GetFloat(message, &field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return repeated ? values.GetRepeatedBool(message, &field, index) : values.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = repeated ? values.GetRepeatedEnumValue(message, &field, index)
                                  : values.GetEnumValue(message, &field);
      const EnumValueDescriptor* value = field.enum_type()->FindValueByNumber(number);
      if (value == nullptr) return number;  // of a newer server
      return NameOf(*value);
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return repeated ? values.GetRepeatedString(message, &field, index) : values.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(repeated ? values.GetRepeatedMessage(message, &field, index)
                             : values.GetMessage(message, &field));
  }
  return nullptr;
}

}  // namespace

ordered_json ToJson(const Message& message) {
  ordered_json json = ordered_json::object();
  const google::protobuf::Reflection& values = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (field.is_repeated()) {
      ordered_json& list = json[field.name()] = ordered_json::array();
      for (int k = 0; k < values.FieldSize(message, &field); ++k) list.push_back(ValueOf(message, field, k));
    } else if (!field.has_presence() || values.HasField(message, &field)) {
      json[field.name()] = ValueOf(message, field, -1);
    }
  }
  return json;
}

}  // namespace warpline::client
