// How the `warpline` program fails: by a mistake of its caller, by a fault of this machine, or by what a
// server answered. The three differ in exit code and in what is said.
#ifndef WARPLINE_CLIENT_CLI_ERROR_H_
#define WARPLINE_CLIENT_CLI_ERROR_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

namespace warpline::client {

// A mistake in how the program was called, rather than a refusal: exit code 2.
absl::Status UsageError(std::string_view message);
bool IsUsageError(const absl::Status& status);
// The same error, as one of usage.
absl::Status AsUsageError(const absl::Status& status);

// Something that went wrong here and not on the server, as a full disk: exit code 1, without a gRPC code.
absl::Status LocalError(std::string_view message);
// Of reading or writing a file: InvalidArgument (the path or what is in the file) as an error of usage,
// anything else as a local one.
absl::Status AsFileError(const absl::Status& status);

// The same error, with a line on what to do about it. Of two, the first stays. An error of usage that has
// none points to the program's help.
absl::Status WithAdvice(const absl::Status& status, std::string_view advice);
// The same error, with another text.
absl::Status WithText(const absl::Status& status, std::string_view text);
// The same error, with what it is about before its text.
absl::Status WithSubject(const absl::Status& status, std::string_view subject);
// Of a call to `server`: with advice, where the error does not say it all itself (nobody is there, or only
// others may call; request or result is larger than the server takes; no more tensors may stay there; the
// server is older than this program).
absl::Status WithAdviceOnServer(const absl::Status& status, std::string_view server);

// Of a usage error of this command: advice to read the command's help. Other errors stay as they are.
absl::Status WithAdviceOnCommand(const absl::Status& status, std::string_view command);

// Of the process.
int ExitCode(const absl::Status& status);
// What to tell about a failure, with ids as WithShortIds() has them; no newline at the end.
std::string Complaint(const absl::Status& status);

// As ASSIGN_OR_RETURN, but the error is one of usage.
#define ASSIGN_OR_USAGE(lhs, expression) \
  ASSIGN_OR_USAGE_IMPL(WARPLINE_CONCAT(warpline_usage_or_, __LINE__), lhs, expression)
#define ASSIGN_OR_USAGE_IMPL(holder, lhs, expression)     \
  auto holder = (expression);                             \
  if (!holder.ok()) return AsUsageError(holder.status()); \
  lhs = std::move(holder).value()

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_ERROR_H_
