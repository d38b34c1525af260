#include "proto/rules/known_fields.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/field_error.h"

namespace warpline {
namespace {

// Returns whether a message has an unknown field. If so, sets `path` to the path of that field.
bool HasUnknown(const google::protobuf::Message& message, std::string& path) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (const auto& unknown = reflection.GetUnknownFields(message); !unknown.empty()) {
    path = absl::StrCat(unknown.field(0).number());
    return true;
  }
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* const field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      if (!HasUnknown(reflection.GetMessage(message, field), path)) continue;
      path = absl::StrCat(field->name(), ".", path);
      return true;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      if (!HasUnknown(reflection.GetRepeatedMessage(message, field, i), path)) continue;
      path = absl::StrCat(field->name(), "[", i, "].", path);
      return true;
    }
  }
  return false;
}

}  // namespace

absl::Status CheckAllKnown(const google::protobuf::Message& message) {
  std::string path;
  if (!HasUnknown(message, path)) return absl::OkStatus();
  return InField(path,
                 absl::UnimplementedError("this server does not know the field, which belongs to a newer "
                                          "version of the API"));
}

absl::Status UnknownNumber(std::string_view field, int number, std::string_view known) {
  const std::string text = absl::StrCat("number ", number, " is none of ", std::string(known));
  if (number <= 0) return FieldError(field, text);
  return InField(field,
                 absl::UnimplementedError(absl::StrCat(
                     text, "; this server does not know what a newer version of the API may mean by it")));
}

}  // namespace warpline
