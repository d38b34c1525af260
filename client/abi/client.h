// A client of the C interface, and the common parts of its calls.
#ifndef WARPLINE_CLIENT_ABI_CLIENT_H_
#define WARPLINE_CLIENT_ABI_CLIENT_H_

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "warpline/client.h"
#include "warpline/warpline.h"

struct warpline_client {
  warpline_client(const char* target, const warpline::client::ClientOptions& options)
      : client(target, options) {}

  // Returns FAILED_PRECONDITION in a forked child: gRPC's threads do not exist there.
  absl::Status Check() const {
    if (getpid() == process) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("this client was made by process ", process, ", of which this is a forked child"));
  }

  const pid_t process = getpid();
  warpline::client::Client client;
};

namespace warpline::abi {

// Copies options of a caller with an older, smaller structure. Missing fields are zero. Null: all fields are
// zero.
template <typename Options>
absl::StatusOr<Options> KnownPart(const Options* given) {
  Options options = {};
  if (given == nullptr) return options;
  if (given->size < sizeof(size_t)) {
    return absl::InvalidArgumentError(
        absl::StrCat("options.size is ", given->size, ": the size of the structure"));
  }
  std::memcpy(&options, given, std::min(given->size, sizeof(Options)));
  return options;
}

// Returns INVALID_ARGUMENT for an id that gRPC cannot send.
inline absl::Status CheckRequestId(const char* id) {
  const std::string_view text = id == nullptr ? "" : id;
  const bool printable = std::all_of(text.begin(), text.end(),
                                     [](char character) { return character > ' ' && character <= '~'; });
  if (printable && text.size() <= 128) return absl::OkStatus();
  return absl::InvalidArgumentError("request_id: up to 128 printable ASCII characters without spaces");
}

inline std::string TextOf(const char* text) { return text == nullptr ? std::string() : std::string(text); }
inline absl::Duration TimeoutOf(double seconds) {
  constexpr absl::Duration kDefault = absl::Seconds(60);
  return seconds == 0 ? kDefault : absl::Seconds(seconds);
}

}  // namespace warpline::abi

#endif  // WARPLINE_CLIENT_ABI_CLIENT_H_
