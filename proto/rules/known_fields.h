// Fields and numbers that a message has and this version of the API does not.
#ifndef WARPLINE_PROTO_RULES_KNOWN_FIELDS_H_
#define WARPLINE_PROTO_RULES_KNOWN_FIELDS_H_

#include <google/protobuf/message.h>

#include <string_view>

#include "absl/status/status.h"

namespace warpline {

// UNIMPLEMENTED if the message, or a message in it, has a field that is not known here: an option that a
// newer client has set would otherwise be ignored, and the result be another one than it asked for. The error
// names the place, of which the last part is the number of the field: "map.nodes[2].9".
absl::Status CheckAllKnown(const google::protobuf::Message& message);

// The error of a number that the enumeration of a field does not have here. UNIMPLEMENTED, since a newer
// client may mean something by it; INVALID_ARGUMENT for 0, which stands for nothing, and below. `known` names
// what the enumeration has.
absl::Status UnknownNumber(std::string_view field, int number, std::string_view known);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_KNOWN_FIELDS_H_
