// Detects fields and enumeration values of a message that this version of the API does not know.
#ifndef WARPLINE_PROTO_RULES_KNOWN_FIELDS_H_
#define WARPLINE_PROTO_RULES_KNOWN_FIELDS_H_

#include <google/protobuf/message.h>

#include <string_view>

#include "absl/status/status.h"

namespace warpline {

// Returns UNIMPLEMENTED if the message, or a nested message, has an unknown field. Otherwise an option of a
// newer client would be ignored, and the result would not be what the client asked for. The error contains
// the path, which ends with the number of the field: "map.nodes[2].9".
absl::Status CheckAllKnown(const google::protobuf::Message& message);

// Returns the error for a number that the field's enumeration does not have. UNIMPLEMENTED, since a newer
// client may know the number. INVALID_ARGUMENT for 0, which means unspecified, and for negative numbers.
// `known` lists the known values.
absl::Status UnknownNumber(std::string_view field, int number, std::string_view known);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_KNOWN_FIELDS_H_
