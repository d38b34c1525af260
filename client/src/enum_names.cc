#include "client/src/enum_names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace warpline::client {
namespace {

// Returns the common prefix of all value names, for example "REDUCE_OP_". The first value is ..._UNSPECIFIED.
std::string Prefix(const google::protobuf::EnumDescriptor& type) {
  const std::string first(type.value(0)->name());
  return first.substr(0, first.rfind('_') + 1);
}

}  // namespace

std::optional<int> EnumValueNamed(const google::protobuf::EnumDescriptor& type, std::string_view name) {
  const std::string upper = absl::AsciiStrToUpper(std::string(name));
  const auto* value = type.FindValueByName(absl::StrCat(Prefix(type), upper));
  if (value == nullptr) value = type.FindValueByName(upper);
  if (value == nullptr || value->index() == 0) return std::nullopt;
  return value->number();
}

std::vector<std::string> EnumValueNames(const google::protobuf::EnumDescriptor& type) {
  const std::size_t prefix = Prefix(type).size();
  std::vector<std::string> names;
  for (int i = 1; i < type.value_count(); ++i) {
    names.push_back(absl::AsciiStrToLower(type.value(i)->name().substr(prefix)));
  }
  return names;
}

}  // namespace warpline::client
