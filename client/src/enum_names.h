// Names of the API's enumeration values as people write them: "sum" for REDUCE_OP_SUM, "f32" for
// DATA_TYPE_F32.
#ifndef WARPLINE_CLIENT_SRC_ENUM_NAMES_H_
#define WARPLINE_CLIENT_SRC_ENUM_NAMES_H_

#include <google/protobuf/descriptor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warpline::client {

// Returns the number of the value with this name. The name may be short or full, in lower or upper case.
// Never returns the number of ..._UNSPECIFIED.
std::optional<int> EnumValueNamed(const google::protobuf::EnumDescriptor& type, std::string_view name);

// Returns the short names in lower case, in the order of their numbers, without "unspecified".
std::vector<std::string> EnumValueNames(const google::protobuf::EnumDescriptor& type);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_ENUM_NAMES_H_
