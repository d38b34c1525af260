// Tells whether a text is UTF-8, as protobuf decides it.
#ifndef WARPLINE_PROTO_WIRE_UTF8_H_
#define WARPLINE_PROTO_WIRE_UTF8_H_

#include <string_view>

namespace warpline {

bool IsUtf8(std::string_view text);

}  // namespace warpline

#endif  // WARPLINE_PROTO_WIRE_UTF8_H_
