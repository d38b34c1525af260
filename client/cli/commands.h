// The commands of the `warpline` program. Each prints to standard output and returns how it ended: an error
// of usage or of this machine (error.h), or what a call returned.
#ifndef WARPLINE_CLIENT_CLI_COMMANDS_H_
#define WARPLINE_CLIENT_CLI_COMMANDS_H_

#include "absl/status/status.h"
#include "client/cli/args.h"
#include "client/cli/flags.h"

namespace warpline::client {

absl::Status RunTranspose(const Args& args, const CommonFlags& common);
absl::Status RunGemm(const Args& args, const CommonFlags& common);
absl::Status RunReduce(const Args& args, const CommonFlags& common);
absl::Status RunRun(const Args& args, const CommonFlags& common);
absl::Status RunPut(const Args& args, const CommonFlags& common);
absl::Status RunGet(const Args& args, const CommonFlags& common);
absl::Status RunDrop(const Args& args, const CommonFlags& common);
absl::Status RunTensors(const Args& args, const CommonFlags& common);
absl::Status RunInfo(const Args& args, const CommonFlags& common);
absl::Status RunHealth(const Args& args, const CommonFlags& common);
absl::Status RunBench(const Args& args, const CommonFlags& common);
absl::Status RunCompletion(const Args& args, const CommonFlags& common);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_COMMANDS_H_
