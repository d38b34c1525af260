#include "client/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/args.h"
#include "client/cli/error.h"
#include "client/cli/help.h"
#include "cmake/version.h"

namespace warpline::client {

CommandLine::~CommandLine() = default;

CommandLine::CommandLine() : app(std::make_unique<CLI::App>("", "warpline")) {
  app->formatter(HelpFormatter());
  app->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  // Common flags may also follow the command. A word after the command is never another command.
  app->fallthrough();
  app->require_subcommand(0, 1);
  common.AddTo(*app);
  app->set_help_flag("-h,--help", "print this text; after a command, that of the command");
  app->set_version_flag("--version", absl::StrCat("warpline ", kVersion, " (", kRevision, ")\n"),
                        "print the version");
  app->footer(
      "An array is a .npy file, or @ID, a tensor on the server (`warpline put --help`).\n"
      "`warpline COMMAND --help` tells more, with an example.\n"
      "Exit codes: 0 done; 1 the server refused, or reading or writing failed midway; 2 bad usage, such as "
      "a\n"
      "wrong path.\n");
  AddTranspose(*this);
  AddGemm(*this);
  AddReduce(*this);
  AddRun(*this);
  AddPut(*this);
  AddGet(*this);
  AddDrop(*this);
  AddTensors(*this);
  AddInfo(*this);
  AddHealth(*this);
  AddBench(*this);
  AddCompletion(*this);
}

CLI::App& CommandLine::AddCommand(const std::string& name, const std::string& help,
                                  const std::string& example, std::function<absl::Status()> run) {
  CLI::App* const command = app->add_subcommand(name, help);
  command->set_help_flag();  // the program's help flag is used
  command->footer(absl::StrCat("example: warpline ", example, "\n"));
  runs[command] = std::move(run);
  return *command;
}

absl::StatusOr<std::string> CommandLine::Parse(std::vector<std::string> words) {
  // Many other programs accept `help gemm` for `gemm --help`.
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.push_back("--help");
  }
  absl::StatusOr<std::string> text = client::Parse(*app, words);
  const std::vector<CLI::App*> commands = app->get_subcommands();
  if (!text.ok() && !commands.empty())
    return WithAdviceOnCommand(text.status(), commands.front()->get_name());
  if (text.ok() && text->empty() && commands.empty()) return UsageError("a command is missing");
  return text;
}

absl::Status CommandLine::Run() {
  const CLI::App* const command = app->get_subcommands().front();
  const auto run = [&]() -> absl::Status {
    RETURN_IF_ERROR(common.Complete(*app));
    return WithAdviceOnServer(runs.at(command)(), common.server);
  };
  return WithAdviceOnCommand(run(), command->get_name());
}

}  // namespace warpline::client
