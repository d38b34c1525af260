// Ids of tensors and regions are secrets, and texts are shown, logged and passed on.
#ifndef WARPLINE_CLIENT_SRC_SHORT_IDS_H_
#define WARPLINE_CLIENT_SRC_SHORT_IDS_H_

#include <string>
#include <string_view>

namespace warpline::client {

// The text with each id in it as ShortId() has it. What looks like one counts, whole or with some digits
// missing or too many: hexadecimal digits, a hyphen, and 16 hexadecimal digits or more.
std::string WithShortIds(std::string_view text);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_SHORT_IDS_H_
