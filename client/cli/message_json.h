// A protobuf message as the JSON that --json prints.
#ifndef WARPLINE_CLIENT_CLI_MESSAGE_JSON_H_
#define WARPLINE_CLIENT_CLI_MESSAGE_JSON_H_

#include <google/protobuf/message.h>

#include <nlohmann/json_fwd.hpp>

namespace warpline::client {

// Returns the message with its own names of fields. Unlike protobuf's JSON, integers of 64 bits are numbers,
// and enumerations have the names that our flags take: "f32" for DATA_TYPE_F32. All fields are there, but
// messages that are not set. For messages without maps and bytes.
nlohmann::ordered_json ToJson(const google::protobuf::Message& message);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_MESSAGE_JSON_H_
