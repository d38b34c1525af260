// How the values of flags are read: each function makes one that takes the text of a value over into a
// variable, which must outlive it, or says what the value must be: "must be a number from 0 to 64".
#ifndef WARPLINE_SERVER_SETTINGS_FLAG_VALUES_H_
#define WARPLINE_SERVER_SETTINGS_FLAG_VALUES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace warpline {

using SetValue = std::function<absl::Status(const std::string& text)>;

// Whole and within [least, most].
absl::Status ReadInteger(const std::string& text, std::int64_t least, std::int64_t most, std::int64_t& value);
template <typename T>
SetValue Integer(T& variable, std::int64_t least, std::int64_t most) {
  return [&variable, least, most](const std::string& text) {
    std::int64_t value = 0;
    absl::Status status = ReadInteger(text, least, most, value);
    if (status.ok()) variable = static_cast<T>(value);
    return status;
  };
}

// Decimal, a fraction allowed, within [0, most].
SetValue Number(std::optional<double>& variable, double most);

// "64K", "256MiB", "1G" (server/base/parse_bytes.h), within [least, most].
SetValue Bytes(std::int64_t& variable, std::int64_t least, std::int64_t most);
// Likewise, or 0.
SetValue BytesOrZero(std::int64_t& variable, std::int64_t least, std::int64_t most);
// Likewise, at most 1024G; nothing for "auto".
SetValue BytesOrAuto(std::optional<std::int64_t>& variable, std::int64_t least);

// "1500ms", "10m": with a unit, within [least, most].
SetValue Time(absl::Duration& variable, absl::Duration least, absl::Duration most);

// "true", "false", or nothing, which is true.
SetValue Switch(bool& variable);

SetValue OneOf(std::string& variable, std::vector<std::string> values);

// Anything but empty.
SetValue Path(std::string& variable);

// Each host:port or unix:/path, with commas between them.
SetValue Addresses(std::vector<std::string>& variable);
// One host:port, or empty.
SetValue MetricsAddress(std::string& variable);

// "0,2", each once; none for "all".
SetValue Ordinals(std::vector<int>& variable);

// The name of an owner, as in "token:NAME" of the file of --tokens.
SetValue TokenName(std::string& variable);

}  // namespace warpline

#endif  // WARPLINE_SERVER_SETTINGS_FLAG_VALUES_H_
