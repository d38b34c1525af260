#include "proto/rules/known_fields.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/field_error.h"
#include "kernels/status_macros.h"

namespace warpline {
namespace {

absl::Status Check(const google::protobuf::Message& message, const std::string& path) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (const auto& unknown = reflection.GetUnknownFields(message); !unknown.empty()) {
    return InField(absl::StrCat(path, unknown.field(0).number()),
                   absl::UnimplementedError(
                       "this server does not know the field, which belongs to a newer version of the API"));
  }
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* const field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      RETURN_IF_ERROR(Check(reflection.GetMessage(message, field), absl::StrCat(path, field->name(), ".")));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      RETURN_IF_ERROR(Check(reflection.GetRepeatedMessage(message, field, i),
                            absl::StrCat(path, field->name(), "[", i, "].")));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAllKnown(const google::protobuf::Message& message) { return Check(message, ""); }

}  // namespace warpline
