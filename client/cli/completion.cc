#include "client/cli/completion.h"

#include <cstdio>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/commands.h"
#include "client/cli/flags.h"

namespace warpline::client {
namespace {

// What a flag's value is completed with.
enum class ValueKind { kNone, kFile, kList, kAnything };

ValueKind KindOf(const CommandSpec& command, const FlagSpec& flag) {
  if (flag.value.empty()) return ValueKind::kNone;
  if (flag.value == "FILE" || flag.value == "PATH") return ValueKind::kFile;
  return ValuesOf(command, flag).empty() ? ValueKind::kAnything : ValueKind::kList;
}

std::vector<std::string> Spellings(const FlagSpec& flag) {
  std::vector<std::string> spellings = {absl::StrCat("--", std::string(flag.name))};
  if (flag.letter != 0) spellings.push_back(absl::StrCat("-", std::string(1, flag.letter)));
  return spellings;
}

std::string CommandNames(const char* separator) {
  std::vector<std::string> names;
  for (const CommandSpec& command : AllCommands()) names.emplace_back(command.name);
  return absl::StrJoin(names, separator);
}

// Spellings of the flags that take a value, whatever the command: in front of one there can be any.
std::string FlagsWithValues() {
  std::vector<std::string> names;
  for (const FlagSpec& flag : AllFlags()) {
    if (flag.value.empty()) continue;
    for (const std::string& spelling : Spellings(flag)) names.push_back(spelling);
  }
  return absl::StrJoin(names, "|");
}

// One branch of bash's `case $command`.
std::string BashBranch(const CommandSpec& command) {
  std::vector<std::string> all;
  std::string values;
  for (const FlagSpec& flag : AllFlags()) {
    if (!Takes(command, flag)) continue;
    all.push_back(Spellings(flag).front());
    const ValueKind kind = KindOf(command, flag);
    if (kind == ValueKind::kNone) continue;
    const std::string with = kind == ValueKind::kList   ? absl::StrJoin(ValuesOf(command, flag), " ")
                             : kind == ValueKind::kFile ? "@files"
                                                        : "@nothing";
    absl::StrAppend(&values, "        ", absl::StrJoin(Spellings(flag), "|"), ") values='", with, "' ;;\n");
  }
  return absl::StrCat("    ", std::string(command.name), ")\n      flags='", absl::StrJoin(all, " "),
                      "'\n      case $prev in\n", values, "      esac ;;\n");
}

// Within the single quotes and the brackets of an argument of _arguments.
std::string ZshEscaped(std::string_view text) {
  return absl::StrReplaceAll(std::string(text), {{"'", "'\\''"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

std::string ZshFlag(const CommandSpec& command, const FlagSpec& flag) {
  std::string lines;
  // -o may be given for each output of a program.
  const char* repeated = flag.name == "output" && command.name == "run" ? "*" : "";
  for (const std::string& spelling : Spellings(flag)) {
    std::string value;
    const bool is_long = spelling.size() > 2;
    if (!flag.value.empty()) {
      value = absl::StrCat(":", ZshEscaped(flag.value), ":");
      const ValueKind kind = KindOf(command, flag);
      if (kind == ValueKind::kFile) value += "_files";
      if (kind == ValueKind::kList) {
        absl::StrAppend(&value, "(", absl::StrJoin(ValuesOf(command, flag), " "), ")");
      }
    }
    absl::StrAppend(&lines, "        '", repeated, spelling, !value.empty() && is_long ? "=" : "", "[",
                    ZshEscaped(HelpOf(command, flag)), "]", value, "' \\\n");
  }
  return lines;
}

const char* ZshPositionals(const CommandSpec& command) {
  if (command.name == "completion") return "':shell:(bash zsh)'";
  if (command.name == "get" || command.name == "drop") return "'*:id:'";
  return "'*:file:_files'";
}

}  // namespace

std::string BashCompletion() {
  std::string text = absl::StrCat(R"(# Completes `warpline` in bash; made by `warpline completion bash`.
_warpline() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command='' flags='' values='' i
  # bash makes '=' a word of its own.
  if [[ $cur == = ]]; then
    cur=''
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i]} in
      )",
                                  FlagsWithValues(), R"()
        [[ ${COMP_WORDS[i+1]} == = ]] && ((++i))
        ((++i)) ;;
      )",
                                  CommandNames("|"), R"()
        command=${COMP_WORDS[i]}
        break ;;
    esac
  done
  case $command in
)");
  for (const CommandSpec& command : AllCommands()) text += BashBranch(command);
  // Before the command there are the common flags, or its name.
  CommandSpec none;
  none.name = "*";
  text += BashBranch(none);
  absl::StrAppend(&text, R"(  esac
  if [[ -z $values && $cur == -* ]]; then
    values=$flags
  elif [[ -z $values && -z $command ]]; then
    values=')",
                  CommandNames(" "), R"('
  elif [[ -z $values && $command == completion ]]; then
    values='bash zsh'
  elif [[ -z $values && ( $command == get || $command == drop || $command == tensors ) ]]; then
    values=@nothing
  fi
  case $values in
    @nothing) COMPREPLY=() ;;
    @files|'') compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur") ;;
  esac
}
complete -F _warpline warpline
)");
  return text;
}

std::string ZshCompletion() {
  std::string text = absl::StrCat(
      "#compdef warpline\n# Made by `warpline completion zsh`.\n_warpline() {\n"
      "  local command='' i\n  for ((i = 2; i < CURRENT; ++i)); do\n"
      "    case ${words[i]} in\n      ",
      FlagsWithValues(), ") ((++i)) ;;\n      ", CommandNames("|"),
      ") command=${words[i]}; break ;;\n    esac\n  done\n  case $command in\n");
  for (const CommandSpec& command : AllCommands()) {
    absl::StrAppend(&text, "    ", std::string(command.name), ")\n      _arguments \\\n");
    for (const FlagSpec& flag : AllFlags()) {
      if (Takes(command, flag)) text += ZshFlag(command, flag);
    }
    absl::StrAppend(&text, "        '1:command:(", CommandNames(" "), ")' ", ZshPositionals(command),
                    " ;;\n");
  }
  text += "    *)\n      local -a commands=(\n";
  for (const CommandSpec& command : AllCommands()) {
    absl::StrAppend(&text, "        '", std::string(command.name), ":", ZshEscaped(command.help), "'\n");
  }
  return absl::StrCat(
      text, "      )\n      _describe command commands ;;\n  esac\n}\n",
      "if [[ $funcstack[1] == _warpline ]]; then _warpline \"$@\"; else compdef _warpline warpline; fi\n");
}

absl::Status RunCompletion(const Args& args, const CommonFlags&) {
  const std::string shell = args.positionals().size() == 2 ? args.positionals()[1] : "";
  if (shell != "bash" && shell != "zsh") return UsageError("completion takes the shell's name: bash or zsh");
  std::fputs((shell == "bash" ? BashCompletion() : ZshCompletion()).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace warpline::client
