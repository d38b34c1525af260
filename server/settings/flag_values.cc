#include "server/settings/flag_values.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/base/parse_bytes.h"

namespace warpline {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;

absl::Status MustBe(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("must be ", what));
}

absl::Status ReadBytes(const std::string& text, std::int64_t least, std::int64_t most, const char* or_else,
                       std::int64_t& bytes) {
  const absl::StatusOr<std::int64_t> value = ParseBytes(text);
  if (!value.ok() || *value < least || *value > most) {
    return MustBe(absl::StrCat(or_else, "a number of bytes (suffix K, M or G) from ", least, " to ", most));
  }
  bytes = *value;
  return absl::OkStatus();
}

// Returns whether the text is host:port with a valid port number.
bool IsHostAndPort(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  int port = 0;
  return colon != std::string::npos && colon > 0 && absl::SimpleAtoi(address.substr(colon + 1), &port) &&
         port >= 0 && port <= 65535;
}

}  // namespace

absl::Status ReadInteger(const std::string& text, std::int64_t least, std::int64_t most,
                         std::int64_t& value) {
  if (absl::SimpleAtoi(text, &value) && value >= least && value <= most) return absl::OkStatus();
  return MustBe(absl::StrCat("a number from ", least, " to ", most));
}

SetValue Number(std::optional<double>& variable, double most) {
  return [&variable, most](const std::string& text) {
    double value = 0;
    if (!absl::SimpleAtod(text, &value) || !(value >= 0 && value <= most)) {
      return MustBe(absl::StrCat("a number from 0 to ", most));
    }
    variable = value;
    return absl::OkStatus();
  };
}

SetValue Bytes(std::int64_t& variable, std::int64_t least, std::int64_t most) {
  return [&variable, least, most](const std::string& text) {
    return ReadBytes(text, least, most, "", variable);
  };
}

SetValue BytesOrAuto(std::optional<std::int64_t>& variable, std::int64_t least) {
  return [&variable, least](const std::string& text) {
    if (text == "auto") {
      variable.reset();
      return absl::OkStatus();
    }
    std::int64_t bytes = 0;
    absl::Status status = ReadBytes(text, least, kMaxBytes, "auto, or ", bytes);
    if (status.ok()) variable = bytes;
    return status;
  };
}

SetValue Time(absl::Duration& variable, absl::Duration least, absl::Duration most) {
  return [&variable, least, most](const std::string& text) {
    absl::Duration value;
    if (!absl::ParseDuration(text, &value) || value < least || value > most) {
      return MustBe(absl::StrCat("a duration with its unit, from ", absl::FormatDuration(least), " to ",
                                 absl::FormatDuration(most)));
    }
    variable = value;
    return absl::OkStatus();
  };
}

SetValue Switch(bool& variable) {
  return [&variable](const std::string& text) {
    if (!text.empty() && text != "true" && text != "false") return MustBe("true or false");
    variable = text != "false";
    return absl::OkStatus();
  };
}

SetValue OneOf(std::string& variable, std::vector<std::string> values) {
  return [&variable, values = std::move(values)](const std::string& text) {
    if (!absl::c_linear_search(values, text)) return MustBe(absl::StrJoin(values, ", "));
    variable = text;
    return absl::OkStatus();
  };
}

SetValue Path(std::string& variable) {
  return [&variable](const std::string& text) {
    if (text.empty()) return MustBe("a path");
    variable = text;
    return absl::OkStatus();
  };
}

SetValue Addresses(std::vector<std::string>& variable) {
  return [&variable](const std::string& text) {
    std::vector<std::string> addresses = absl::StrSplit(text, ',');
    for (const std::string& address : addresses) {
      if (absl::StartsWith(address, "unix:") ? address.size() == 5 : !IsHostAndPort(address)) {
        return MustBe("host:port (port 0 to 65535) or unix:/path");
      }
    }
    variable = std::move(addresses);
    return absl::OkStatus();
  };
}

SetValue MetricsAddress(std::string& variable) {
  return [&variable](const std::string& text) {
    if (!text.empty() && (!IsHostAndPort(text) || absl::StrContains(text, ","))) {
      return MustBe("one host:port (port 0 to 65535) or empty");
    }
    variable = text;
    return absl::OkStatus();
  };
}

SetValue DeviceNames(std::vector<std::string>& variable) {
  return [&variable](const std::string& text) {
    std::vector<std::string> names;
    if (text != "all") {
      for (const absl::string_view part : absl::StrSplit(text, ',')) {
        std::string name(part);
        int ordinal = 0;
        const bool is_ordinal = absl::SimpleAtoi(part, &ordinal) && ordinal >= 0;
        if (absl::StartsWith(part, "MIG-")) {
          return MustBe("ordinals or UUIDs of whole GPUs; CUDA_VISIBLE_DEVICES chooses a MIG instance");
        }
        if (!is_ordinal && !absl::StartsWith(part, "GPU-"))
          return MustBe("all, or devices like 0,1 or GPU-1a2b");
        if (absl::c_linear_search(names, name)) return MustBe("devices of which none is named twice");
        names.push_back(std::move(name));
      }
    }
    variable = std::move(names);
    return absl::OkStatus();
  };
}

SetValue TokenName(std::string& variable) {
  return [&variable](const std::string& text) {
    const bool allowed = !text.empty() && text.size() <= 64 && text.front() != '-' &&
                         absl::c_all_of(text, [](unsigned char c) {
                           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
                         });
    if (!allowed) {
      return MustBe("a name of 1 to 64 letters, digits, '.', '_' and '-', which does not begin with '-'");
    }
    variable = text;
    return absl::OkStatus();
  };
}

}  // namespace warpline
