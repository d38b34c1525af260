#include "client/cli/completion.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/args.h"
#include "client/cli/command_line.h"

namespace warpline::client {
namespace {

// Returns the completions of a value, in the notation of the bash script below.
std::string Values(const CLI::Option& option) {
  if (ValueName(option) == "FILE" || ValueName(option) == "PATH") return "@files";
  const std::vector<std::string> choices = ChoicesOf(option);
  return choices.empty() ? "@nothing" : absl::StrJoin(choices, " ");
}

// Returns the spellings of an option: "-o" and "--output".
std::vector<std::string> Spellings(const CLI::Option& option) {
  return absl::StrSplit(option.get_name(/*positional=*/false, /*all_options=*/true), ',');
}

// Returns the flags of the program or of a command, without those that a command shares with the program.
std::vector<const CLI::Option*> Flags(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->nonpositional(); });
}

// Returns the option for the positional arguments of a command; null if it has none.
const CLI::Option* Argument(const CLI::App& command) {
  const auto arguments =
      command.get_options([](const CLI::Option* option) { return option->get_positional(); });
  return arguments.empty() ? nullptr : arguments.front();
}

std::string CommandNames(const CLI::App& program, const char* separator) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  return absl::StrJoin(names, separator);
}

// Returns the spellings of the flags with a value that can come before the command.
std::string FlagsWithValues(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::Option* flag : Flags(program)) {
    if (ValueName(*flag).empty()) continue;
    for (const std::string& spelling : Spellings(*flag)) names.push_back(spelling);
  }
  return absl::StrJoin(names, "|");
}

// One branch of bash's `case $command`.
std::string BashBranch(const std::string& name, const std::vector<const CLI::App*>& apps,
                       const std::string& arguments) {
  std::vector<std::string> all;
  std::string values;
  for (const CLI::App* app : apps) {
    for (const CLI::Option* flag : Flags(*app)) {
      all.push_back(Spellings(*flag).back());
      if (ValueName(*flag).empty()) continue;
      absl::StrAppend(&values, "        ", absl::StrJoin(Spellings(*flag), "|"), ") values='", Values(*flag),
                      "' ;;\n");
    }
  }
  return absl::StrCat("    ", name, ")\n      flags='", absl::StrJoin(all, " "), "' arguments='", arguments,
                      "'\n      case $prev in\n", values, "      esac ;;\n");
}

// Escapes text within the single quotes and the brackets of an argument of _arguments.
std::string ZshEscaped(std::string_view text) {
  return absl::StrReplaceAll(std::string(text), {{"'", "'\\''"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

// Returns the action of _arguments for a value.
std::string ZshAction(const CLI::Option& option) {
  const std::string values = Values(option);
  const std::string action = values == "@files" ? "_files" : values == "@nothing" ? "" : "(" + values + ")";
  return absl::StrCat(":", ZshEscaped(ValueName(option)), ":", action);
}

std::string ZshFlag(const CLI::Option& flag) {
  std::string lines;
  const bool has_value = !ValueName(flag).empty();
  for (const std::string& spelling : Spellings(flag)) {
    const bool is_long = spelling.size() > 2;
    absl::StrAppend(&lines, "        '", flag.get_items_expected_max() > 1 ? "*" : "", spelling,
                    has_value && is_long ? "=" : "", "[", ZshEscaped(flag.get_description()), "]",
                    has_value ? ZshAction(flag) : "", "' \\\n");
  }
  return lines;
}

struct CompletionFlags {
  const CLI::App* program;
  std::string shell;
};

absl::Status RunCompletion(const CompletionFlags& flags, const CommonFlags&) {
  const bool is_bash = flags.shell == "bash";
  std::fputs((is_bash ? BashCompletion(*flags.program) : ZshCompletion(*flags.program)).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

std::string BashCompletion(const CLI::App& program) {
  std::string text = absl::StrCat(R"(# Completes `warpline` in bash; made by `warpline completion bash`.
_warpline() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command='' flags='' arguments='' values='' i
  # bash makes '=' a word of its own.
  if [[ $cur == = ]]; then
    cur=''
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i]} in
      )",
                                  FlagsWithValues(program), R"()
        [[ ${COMP_WORDS[i+1]} == = ]] && ((++i))
        ((++i)) ;;
      )",
                                  CommandNames(program, "|"), R"()
        command=${COMP_WORDS[i]}
        break ;;
    esac
  done
  case $command in
)");
  for (const CLI::App* command : program.get_subcommands({})) {
    const CLI::Option* const argument = Argument(*command);
    text += BashBranch(command->get_name(), {command, &program},
                       argument == nullptr ? "@nothing" : Values(*argument));
  }
  text += BashBranch("*", {&program}, CommandNames(program, " "));
  absl::StrAppend(&text, R"(  esac
  if [[ -z $values && $cur == -* ]]; then
    values=$flags
  elif [[ -z $values ]]; then
    values=$arguments
  fi
  case $values in
    @nothing) COMPREPLY=() ;;
    @files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur") ;;
  esac
}
complete -F _warpline warpline
)");
  return text;
}

std::string ZshCompletion(const CLI::App& program) {
  const std::string names = CommandNames(program, " ");
  std::string branches, commands;
  for (const CLI::App* command : program.get_subcommands({})) {
    absl::StrAppend(&branches, "    ", command->get_name(), ")\n      _arguments \\\n");
    for (const CLI::App* app : {command, &program}) {
      for (const CLI::Option* flag : Flags(*app)) branches += ZshFlag(*flag);
    }
    const CLI::Option* const argument = Argument(*command);
    absl::StrAppend(&branches, "        '1:command:(", names, ")'",
                    argument == nullptr ? "" : absl::StrCat(" '*", ZshAction(*argument), "'"), " ;;\n");
    absl::StrAppend(&commands, "        '", command->get_name(), ":", ZshEscaped(command->get_description()),
                    "'\n");
  }
  return absl::StrCat(
      "#compdef warpline\n# Made by `warpline completion zsh`.\n_warpline() {\n"
      "  local command='' i\n  for ((i = 2; i < CURRENT; ++i)); do\n"
      "    case ${words[i]} in\n      ",
      FlagsWithValues(program), ") ((++i)) ;;\n      ", CommandNames(program, "|"),
      ") command=${words[i]}; break ;;\n    esac\n  done\n  case $command in\n", branches,
      "    *)\n      local -a commands=(\n", commands,
      "      )\n      _describe command commands ;;\n  esac\n}\n"
      "if [[ $funcstack[1] == _warpline ]]; then _warpline \"$@\"; else compdef _warpline warpline; fi\n");
}

void AddCompletion(CommandLine& line) {
  auto [app, flags, common] =
      line.Add("completion", "print a script that completes command lines",
               "completion bash >~/.local/share/bash-completion/completions/warpline", RunCompletion);
  flags.program = line.app.get();
  const std::vector<std::string> shells = {"bash", "zsh"};
  app.add_option("SHELL", flags.shell)->required()->check(CLI::IsMember(shells))->type_name("SHELL");
  app.footer(
      absl::StrCat("For zsh, save the script as _warpline in a folder of $fpath.\n\n", app.get_footer()));
}

}  // namespace warpline::client
