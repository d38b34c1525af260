// Parsers for the values of flags. Each function returns one that writes a value to a variable, which must
// outlive it, or returns an error that says what the value must be: "must be a number from 0 to 64".
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

// An integer within [least, most].
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

// A decimal number, which may have a fraction, within [0, most].
SetValue Number(std::optional<double>& variable, double most);

// "64K", "256MiB", "1G" (server/base/parse_bytes.h), within [least, most].
SetValue Bytes(std::int64_t& variable, std::int64_t least, std::int64_t most);
// The same, at most 1024G; not set for "auto".
SetValue BytesOrAuto(std::optional<std::int64_t>& variable, std::int64_t least);

// "1500ms", "10m": with a unit, within [least, most].
SetValue Time(absl::Duration& variable, absl::Duration least, absl::Duration most);

// "true", "false", or an empty text, which means true.
SetValue Switch(bool& variable);

SetValue OneOf(std::string& variable, std::vector<std::string> values);

// Any text that is not empty.
SetValue Path(std::string& variable);

// host:port or unix:/path, separated by commas.
SetValue Addresses(std::vector<std::string>& variable);
// One host:port, or empty.
SetValue MetricsAddress(std::string& variable);

// "0,GPU-1a2b", without repetitions: ordinals, or UUIDs as `nvidia-smi -L` prints them; empty for "all".
SetValue DeviceNames(std::vector<std::string>& variable);

// The name of an owner, like NAME in "token:NAME" of the file of --tokens.
SetValue TokenName(std::string& variable);

}  // namespace warpline

#endif  // WARPLINE_SERVER_SETTINGS_FLAG_VALUES_H_
