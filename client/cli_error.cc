#include "client/cli_error.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "client/error.h"

namespace warpline::client {
namespace {

constexpr char kUsageUrl[] = "warpline/usage";
constexpr char kLocalUrl[] = "warpline/local";

absl::Status Marked(absl::Status status, const char* url) {
  status.SetPayload(url, absl::Cord());
  return status;
}

}  // namespace

absl::Status UsageError(std::string_view message) {
  return AsUsageError(absl::InvalidArgumentError(std::string(message)));
}

absl::Status AsUsageError(const absl::Status& status) { return Marked(status, kUsageUrl); }

bool IsUsageError(const absl::Status& status) { return status.GetPayload(kUsageUrl).has_value(); }

absl::Status LocalError(std::string_view message) {
  return Marked(absl::UnknownError(std::string(message)), kLocalUrl);
}

absl::Status AsFileError(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? AsUsageError(status) : Marked(status, kLocalUrl);
}

int ExitCode(const absl::Status& status) {
  if (status.ok()) return 0;
  return IsUsageError(status) ? 2 : 1;
}

std::string Complaint(const absl::Status& status) {
  if (IsUsageError(status)) return absl::StrCat(status.message(), "\n(`warpline --help` tells more)");
  if (status.GetPayload(kLocalUrl).has_value()) return std::string(status.message());
  return Describe(status);
}

}  // namespace warpline::client
