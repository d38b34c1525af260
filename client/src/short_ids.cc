#include "client/src/short_ids.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "warpline/tensor.h"

namespace warpline::client {
namespace {

// Half of the digits of an id. Request ids have only 8 digits after their hyphen, and must stay visible.
constexpr std::ptrdiff_t kSecretDigits = 16;

bool IsDigit(char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); }

}  // namespace

std::string WithShortIds(std::string_view text) {
  std::string shown;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    const char* const first_end = std::find_if_not(at, end, IsDigit);
    const char* const second = first_end == end ? end : first_end + 1;
    const char* const second_end = std::find_if_not(second, end, IsDigit);
    if (first_end != at && first_end != end && *first_end == '-' && second_end - second >= kSecretDigits) {
      shown += ShortId({second, static_cast<std::size_t>(second_end - second)});
      at = second_end;
      continue;
    }
    // Skip all digits at once and continue the search after them.
    const char* const next = first_end == at ? at + 1 : first_end;
    shown.append(at, next);
    at = next;
  }
  return shown;
}

}  // namespace warpline::client
