// Hides ids of tensors and regions in texts that are shown, logged or passed on: these ids are secrets.
#ifndef WARPLINE_CLIENT_SRC_SHORT_IDS_H_
#define WARPLINE_CLIENT_SRC_SHORT_IDS_H_

#include <string>
#include <string_view>

namespace warpline::client {

// Returns the text with each id shortened by ShortId(). Anything that looks like an id is shortened, even
// with some digits missing or added: hexadecimal digits, a hyphen, and at least 16 hexadecimal digits.
std::string WithShortIds(std::string_view text);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_SHORT_IDS_H_
