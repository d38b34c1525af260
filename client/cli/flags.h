// The flags and commands of the `warpline` program, and what is common to all commands.
#ifndef WARPLINE_CLIENT_CLI_FLAGS_H_
#define WARPLINE_CLIENT_CLI_FLAGS_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/args.h"
#include "client/cli/error.h"
#include "kernels/dtype.h"
#include "kernels/status_macros.h"
#include "warpline/options.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

struct CommandSpec {
  std::string_view name;
  std::string_view synopsis;  // after the name
  std::string_view help;
  // Names of the flags that it takes beyond the common ones, between spaces: " perm variant ".
  std::string_view flags;
  std::string_view example;     // without "warpline"
  std::string_view notes = "";  // lines at the end of its help
};

// Every flag of every command: one list, since flags may stand before the command's name.
std::span<const FlagSpec> AllFlags();
std::span<const CommandSpec> AllCommands();
// Whether every command takes it.
bool IsCommon(const FlagSpec& flag);
// Whether the command takes it, as one of its own or as a common one.
bool Takes(const CommandSpec& command, const FlagSpec& flag);
// What a flag does, of this command.
std::string_view HelpOf(const CommandSpec& command, const FlagSpec& flag);
std::vector<std::string> DTypeNames();
// The values that a flag of the command can have, where they can be listed.
std::vector<std::string> ValuesOf(const CommandSpec& command, const FlagSpec& flag);

// The command that the first positional argument names, all given flags being among its own.
absl::StatusOr<const CommandSpec*> FindCommand(const Args& args);

std::string VersionText();

// Values of the flag `name`: "sum" and so on, "relu", "f32". The last two are not set if it was not given.
absl::StatusOr<v1::ReduceOp> ReduceOpFlag(const Args& args, std::string_view name);
absl::StatusOr<v1::Activation> ActivationFlag(const Args& args, std::string_view name);
absl::StatusOr<std::optional<DType>> DTypeFlag(const Args& args, std::string_view name);

struct CommonFlags {
  std::string server;   // with its port
  std::string regions;  // path of its region socket; empty: as of its own
  TlsOptions tls;
  std::string token;  // empty: none
  absl::Duration deadline;
  std::string variant;
  std::optional<DType> dtype;
  bool timings = false;
  bool json = false;

  static absl::StatusOr<CommonFlags> From(const Args& args);
  ChannelOptions channel() const { return {.tls = tls, .token = token}; }
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_FLAGS_H_
