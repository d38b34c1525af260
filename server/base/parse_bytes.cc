#include "server/base/parse_bytes.h"

#include <limits>

#include "absl/strings/numbers.h"

namespace warpline {

absl::StatusOr<std::int64_t> ParseBytes(const std::string& text) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  const std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  std::int64_t scale = 1;
  if (unit == "K" || unit == "KiB") {
    scale = 1024;
  } else if (unit == "M" || unit == "MiB") {
    scale = std::int64_t{1} << 20;
  } else if (unit == "G" || unit == "GiB") {
    scale = std::int64_t{1} << 30;
  } else if (!unit.empty()) {
    return absl::InvalidArgumentError("unknown unit");
  }
  std::int64_t value = 0;
  if (!absl::SimpleAtoi(text.substr(0, digits), &value) ||
      value > std::numeric_limits<std::int64_t>::max() / scale) {
    return absl::InvalidArgumentError("not a number");
  }
  return value * scale;
}

}  // namespace warpline
