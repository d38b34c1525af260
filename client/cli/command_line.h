// The command line of the `warpline` program: its commands, and the flags of each command.
#ifndef WARPLINE_CLIENT_CLI_COMMAND_LINE_H_
#define WARPLINE_CLIENT_CLI_COMMAND_LINE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/flags.h"

namespace warpline::client {

struct CommandLine {
  CommandLine();
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  template <typename Flags>
  struct Command {
    CLI::App& app;
    Flags& flags;
    CommonFlags& common;
  };
  // Adds a command. The caller must add its options. `example` omits "warpline". `run` gets the parsed flags,
  // and returns how the command ended: a usage error, a local error (error.h), or the status of a call.
  template <typename Flags>
  Command<Flags> Add(const std::string& name, const std::string& help, const std::string& example,
                     absl::Status (*run)(const Flags&, const CommonFlags&)) {
    const auto flags = std::make_shared<Flags>();
    return {AddCommand(name, help, example, [=, this] { return run(*flags, common); }), *flags, common};
  }
  CLI::App& AddCommand(const std::string& name, const std::string& help, const std::string& example,
                       std::function<absl::Status()> run);

  // Parses the words after the program's name. Returns the text of --help or --version; empty if there is a
  // command to run.
  absl::StatusOr<std::string> Parse(std::vector<std::string> words);
  // Runs the command. Call it after Parse().
  absl::Status Run();

  const std::unique_ptr<CLI::App> app;
  CommonFlags common;
  std::map<const CLI::App*, std::function<absl::Status()>> runs;  // by command
};

// Each function adds one command.
void AddTranspose(CommandLine& line);
void AddGemm(CommandLine& line);
void AddReduce(CommandLine& line);
void AddRun(CommandLine& line);
void AddPut(CommandLine& line);
void AddGet(CommandLine& line);
void AddDrop(CommandLine& line);
void AddTensors(CommandLine& line);
void AddInfo(CommandLine& line);
void AddHealth(CommandLine& line);
void AddBench(CommandLine& line);
void AddCompletion(CommandLine& line);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_COMMAND_LINE_H_
