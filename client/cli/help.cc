#include "client/cli/help.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/args.h"

namespace warpline::client {
namespace {

constexpr std::size_t kColumns = 110;

// Returns the usage text, such as " IN.npy -o FILE [FLAGS]": the required parts, and a hint at optional
// flags.
std::string Synopsis(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_option_text().empty()) {
      absl::StrAppend(&text, " ", option->get_option_text());
    } else if (option->get_positional()) {
      absl::StrAppend(&text, " ", option->get_name(), option->get_items_expected_max() > 1 ? " ..." : "");
    } else if (option->get_required()) {
      const bool is_short = !option->get_snames().empty();
      absl::StrAppend(&text, is_short ? " -" : " --",
                      (is_short ? option->get_snames() : option->get_lnames()).front(), " ",
                      ValueName(*option));
    }
  }
  return text + " [FLAGS]";
}

class Formatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    const CLI::App* const program = app->get_parent();
    std::string text = absl::StrCat("Usage: ", name, program == nullptr ? " COMMAND [FLAGS]" : Synopsis(*app),
                                    "\n", app->get_description(), program == nullptr ? "\n" : "\n\n");
    if (program == nullptr) absl::StrAppend(&text, make_subcommands(app, mode), "\n");
    const std::string options = Options(*app);
    if (!options.empty()) absl::StrAppend(&text, options, "\n");
    if (program != nullptr) absl::StrAppend(&text, Options(*program), "\n");
    return absl::StrCat(text, app->get_footer());
  }

  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode) const override {
    std::string text;
    for (const CLI::App* command : app->get_subcommands({})) {
      absl::StrAppend(&text, "  ", command->get_name(), Synopsis(*command), "\n      ",
                      command->get_description(), "\n");
    }
    return text;
  }

 private:
  static std::string Options(const CLI::App& app) {
    std::string text;
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_positional()) continue;
      const std::vector<std::string> choices = ChoicesOf(*option);
      std::string help = option->get_description();
      if (!choices.empty()) absl::StrAppend(&help, "; one of ", absl::StrJoin(choices, ", "));
      constexpr std::size_t kIndent = 30;
      absl::StrAppendFormat(&text, "  %-27s %s\n",
                            absl::StrCat(option->get_name(false, true), " ", ValueName(*option)),
                            Wrapped(help, kIndent));
    }
    return text;
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> HelpFormatter() { return std::make_shared<Formatter>(); }

std::string Wrapped(std::string_view text, std::size_t indent) {
  std::string wrapped;
  std::size_t column = indent;
  for (const absl::string_view word : absl::StrSplit(absl::string_view(text.data(), text.size()), ' ')) {
    const bool is_first = wrapped.empty(), is_full = column + 1 + word.size() > kColumns;
    if (is_full) column = indent;
    absl::StrAppend(&wrapped, is_first ? "" : is_full ? "\n" + std::string(indent, ' ') : " ", word);
    column += word.size() + 1;
  }
  return wrapped;
}

}  // namespace warpline::client
