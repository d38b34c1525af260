#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "proto/wire/scanner.h"

namespace warpline {

ScanSchema ScanSchema::For(const google::protobuf::Descriptor* message, const Fields& fields) {
  const auto has = [](const std::vector<const Field*>& list, const Field* field) {
    return std::find(list.begin(), list.end(), field) != list.end();
  };
  ScanSchema schema;
  schema.extra_path_ = fields.extra_path;
  std::vector<const google::protobuf::Descriptor*> found = {message};
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::vector<Known>& known = schema.messages_.emplace_back();
    for (int j = 0; j < found[i]->field_count(); ++j) {
      const Field* field = found[i]->field(j);
      const auto number = static_cast<std::uint32_t>(field->number());
      const auto reference = std::find(fields.references.begin(), fields.references.end(), field);
      if (field == fields.payload) {
        known.push_back({number, kPayload});
      } else if (has(fields.scalars, field)) {
        known.push_back({number, kScalar});
      } else if (has(fields.integers, field)) {
        known.push_back({number, kInteger});
      } else if (field == fields.extra) {
        known.push_back({number, kExtra});
      } else if (reference != fields.references.end()) {
        known.push_back({number, kReference - static_cast<int>(reference - fields.references.begin())});
      } else if (field->type() == google::protobuf::FieldDescriptor::TYPE_MESSAGE) {
        const auto type = std::find(found.begin(), found.end(), field->message_type());
        known.push_back({number, static_cast<int>(type - found.begin())});
        if (type == found.end()) found.push_back(field->message_type());
      }
    }
  }
  return schema;
}

std::optional<int> ScanSchema::Find(int message, std::uint32_t number) const {
  for (const Known& field : messages_[message]) {
    if (field.number == number) return field.content;
  }
  return std::nullopt;
}

}  // namespace warpline
