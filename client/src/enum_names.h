// Enumerations of the API by the names that people write: "sum" for REDUCE_OP_SUM, "f32" for DATA_TYPE_F32.
#ifndef WARPLINE_CLIENT_SRC_ENUM_NAMES_H_
#define WARPLINE_CLIENT_SRC_ENUM_NAMES_H_

#include <google/protobuf/descriptor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warpline::client {

// The number of the value with this name, short or in full, lower or upper case; never that of
// ..._UNSPECIFIED.
std::optional<int> EnumValueNamed(const google::protobuf::EnumDescriptor& type, std::string_view name);

// In lower case and in the order of their numbers, without "unspecified".
std::vector<std::string> EnumValueNames(const google::protobuf::EnumDescriptor& type);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_ENUM_NAMES_H_
