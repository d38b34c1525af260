#include "client/cli/help.h"

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/src/enum_names.h"

namespace warpline::client {
namespace {

constexpr std::string_view kTransports = R"(--transport:
    auto    shm for large arrays, if the server is at unix:/path or --regions is given (then it is an error if
            there is none), and stream for what is too large for a request; else inline
    inline  in the request and in the response
    shm     in memory that is shared with the server: files are read into it, and results written from it
    stream  operands are put on the server before the request, and results fetched after it, in pieces

)";

constexpr std::string_view kArrays =
    R"(What is read may also be - (standard input) or @ID, a tensor that is on the server (`warpline put --help`).

)";

// Words, with commas between them, in lines that are as long as the text may be.
std::string Wrapped(const std::vector<std::string>& words) {
  constexpr std::size_t kColumns = 100;
  std::string text;
  std::size_t column = 0;
  for (const std::string& word : words) {
    if (column > 0 && column + word.size() + 2 > kColumns) {
      text += ",\n";
      column = 0;
    }
    absl::StrAppend(&text, column > 0 ? ", " : "    ", word);
    column += word.size() + 2;
  }
  return text + "\n";
}

// Of the flags that every command has, or of the command's own. The command is null for the program's.
std::string FlagHelp(const CommandSpec* command, bool common) {
  std::string text;
  for (const FlagSpec& flag : AllFlags()) {
    if (IsCommon(flag) != common || (!common && !Takes(*command, flag))) continue;
    std::string left =
        absl::StrCat(flag.letter != 0 ? absl::StrCat("-", std::string(1, flag.letter), ", ") : "", "--",
                     std::string(flag.name));
    if (!flag.value.empty()) absl::StrAppend(&left, " ", std::string(flag.value));
    const std::string_view help = command == nullptr ? flag.help : HelpOf(*command, flag);
    absl::StrAppendFormat(&text, "  %-27s %s\n", left, std::string(help));
  }
  return text;
}

std::string CommandHelp(const CommandSpec& command) {
  std::string text = absl::StrCat("usage: warpline ", std::string(command.name), " ",
                                  std::string(command.synopsis), "\n", std::string(command.help), "\n\n");
  if (!command.flags.empty()) absl::StrAppend(&text, FlagHelp(&command, /*common=*/false), "\n");
  absl::StrAppend(&text, FlagHelp(&command, /*common=*/true), "\n");
  // Lists that are too long to stand beside the flags; flags with the same one share it.
  std::vector<std::pair<std::string, std::vector<std::string>>> lists;
  for (const FlagSpec& flag : AllFlags()) {
    const bool is_own = Takes(command, flag) && !IsCommon(flag);
    const bool is_described = flag.name == "transport" && command.name != "bench";
    if (!is_own || is_described || flag.value.find('|') != std::string_view::npos) continue;
    const std::vector<std::string> values = ValuesOf(command, flag);
    const std::string name = absl::StrCat("--", std::string(flag.name));
    if (values.empty()) continue;
    if (!lists.empty() && lists.back().second == values) {
      absl::StrAppend(&lists.back().first, ", ", name);
    } else {
      lists.emplace_back(name, values);
    }
  }
  if (command.name == "run") {
    lists.emplace_back("NAME of reduce's op", EnumValueNames(*v1::ReduceOp_descriptor()));
    lists.emplace_back("TYPE", DTypeNames());
  }
  for (const auto& [flags, values] : lists) absl::StrAppend(&text, flags, ":\n", Wrapped(values), "\n");
  if (Takes(command, {.name = "transport"}) && command.name != "bench") {
    absl::StrAppend(&text, std::string(kTransports), std::string(kArrays));
  }
  if (!command.notes.empty()) absl::StrAppend(&text, std::string(command.notes), "\n");
  return absl::StrCat(text, "example: warpline ", std::string(command.example), "\n");
}

}  // namespace

std::string HelpText(const CommandSpec* command) {
  if (command != nullptr) return CommandHelp(*command);
  std::string text = "usage: warpline [--server ADDR] COMMAND ...\n\n";
  for (const CommandSpec& each : AllCommands()) {
    absl::StrAppend(&text, "  ", std::string(each.name), " ", std::string(each.synopsis), "\n      ",
                    std::string(each.help), "\n");
  }
  absl::StrAppend(
      &text, "\n", FlagHelp(nullptr, /*common=*/true),
      "\nAn array is a .npy file, or @ID, a tensor that is on the server (`warpline put --help`).\n"
      "`warpline COMMAND --help` tells more, with an example.\n"
      "Exit codes: 0 done, 1 the server refused, or reading or writing failed midway, 2 bad usage, a "
      "wrong path\namong it.\n");
  return text;
}

}  // namespace warpline::client
