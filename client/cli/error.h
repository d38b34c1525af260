// Errors of the `warpline` program: a mistake of the caller, a failure of this machine, or an error from a
// server. The three kinds differ in exit code and text.
#ifndef WARPLINE_CLIENT_CLI_ERROR_H_
#define WARPLINE_CLIENT_CLI_ERROR_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

namespace warpline::client {

// Makes an error for a mistake in how the program was called: exit code 2.
absl::Status UsageError(std::string_view message);
bool IsUsageError(const absl::Status& status);
// Returns the same error as a usage error.
absl::Status AsUsageError(const absl::Status& status);

// Makes an error that occurred here and not on the server, such as a full disk: exit code 1, without a gRPC
// code.
absl::Status LocalError(std::string_view message);
// Marks an error of reading or writing a file. InvalidArgument (a bad path or bad contents) becomes a usage
// error. All other errors become local errors.
absl::Status AsFileError(const absl::Status& status);

// Returns the same error with a line of advice. If the error already has advice, that is kept. A usage error
// without advice refers to the program's help.
absl::Status WithAdvice(const absl::Status& status, std::string_view advice);
// Returns the same error with another text.
absl::Status WithText(const absl::Status& status, std::string_view text);
// Returns the same error with its subject in front of the text.
absl::Status WithSubject(const absl::Status& status, std::string_view subject);
// Adds advice to an error of a call to `server`, where the error does not say it all itself:
//   - nobody is there, or only others may call
//   - the request or result is larger than the server takes
//   - no more tensors may stay there
//   - the server is older than this program
absl::Status WithAdviceOnServer(const absl::Status& status, std::string_view server);

// Adds advice to a usage error of this command: to read the command's help. Other errors stay as they are.
absl::Status WithAdviceOnCommand(const absl::Status& status, std::string_view command);

// Returns the exit code of the process.
int ExitCode(const absl::Status& status);
// Returns the text that reports a failure, with ids as WithShortIds() has them. No newline at the end.
std::string Complaint(const absl::Status& status);
// Returns the same as JSON for --json: {"error": {"kind": ..., "message": ...}} with, where there are any,
// "code" (gRPC's), "advice", "violations", "request_id" and "retry_seconds". Kinds are "usage", "local" and
// "call".
std::string ComplaintJson(const absl::Status& status);

// Works like ASSIGN_OR_RETURN, but the error is one of usage.
#define ASSIGN_OR_USAGE(lhs, expression) \
  ASSIGN_OR_USAGE_IMPL(WARPLINE_CONCAT(warpline_usage_or_, __LINE__), lhs, expression)
#define ASSIGN_OR_USAGE_IMPL(holder, lhs, expression)     \
  auto holder = (expression);                             \
  if (!holder.ok()) return AsUsageError(holder.status()); \
  lhs = std::move(holder).value()

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_ERROR_H_
