#include "server/settings/options.h"

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace warpline {

absl::Status ServerOptions::Check() const {
  RETURN_IF_ERROR(CheckListen());
  RETURN_IF_ERROR(CheckTls());
  if (drain_delay > grace) {
    return absl::InvalidArgumentError(
        absl::StrCat("--drain-delay=", absl::FormatDuration(drain_delay),
                     ": must be at most --grace = ", absl::FormatDuration(grace)));
  }
  if (max_connection_age > absl::ZeroDuration() && max_connection_age < absl::Seconds(1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max-connection-age=", absl::FormatDuration(max_connection_age), ": must be 0s or at least 1s"));
  }
  return absl::OkStatus();
}

}  // namespace warpline
