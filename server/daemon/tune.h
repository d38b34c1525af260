// warplined --tune
#ifndef WARPLINE_SERVER_DAEMON_TUNE_H_
#define WARPLINE_SERVER_DAEMON_TUNE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/problem.h"
#include "server/settings/options.h"

namespace warpline {

// The lines of a file, each a problem (kernels/problem_text.h); what follows a # does not count.
// INVALID_ARGUMENT with path and line.
absl::StatusOr<std::vector<Problem>> ReadProblems(const std::string& path);

// Tunes the problems of the file `problems` on the GPUs of the node, which nobody else should use meanwhile,
// adds what it finds to --tuning-file and logs it. The exit code: 0; 1 if none could be tried; 2 if something
// is not valid.
int Tune(const ServerOptions& options, const std::string& problems);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DAEMON_TUNE_H_
