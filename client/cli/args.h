// The parts of the `warpline` command line that CLI11 lacks: kinds of options, and the errors for words that
// nobody expects.
#ifndef WARPLINE_CLIENT_CLI_ARGS_H_
#define WARPLINE_CLIENT_CLI_ARGS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

// Each file that includes CLI11's headers takes several times as long to compile with sanitizers, as they
// have objects of their own for each: these are enough for one that declares or passes options on.
namespace CLI {
class App;
class FormatterBase;
class Option;
}  // namespace CLI

namespace warpline::client {

// Options, whose `names` are as CLI11 has them: "-o,--output". A wrong value is an error of the parse that
// names the option and the value, and says what is expected.

// "5s", "1.5m", "200ms": finite, and above zero or at least zero.
enum class Least { kAboveZero, kZero };
CLI::Option* AddTime(CLI::App& app, const std::string& names, absl::Duration& into, const std::string& help,
                     Least least = Least::kAboveZero);
// "1,0", "-1".
CLI::Option* AddIntegers(CLI::App& app, const std::string& names, std::vector<int>& into,
                         const std::string& help);
// Checks that the value of a file option is not itself an option, as in "-o --timings", where the value was
// forgotten. A file of that name is written as "./--timings". Returns the error text; empty if there is none.
std::string NotAnOption(const std::string& value);
// Unset if it is not given.
CLI::Option* AddNumber(CLI::App& app, const std::string& names, std::optional<double>& into,
                       const std::string& help);
// One of the names, in upper or lower case; `choose` gets its index.
CLI::Option* AddNames(CLI::App& app, const std::string& option, const std::vector<std::string>& names,
                      std::function<void(std::size_t)> choose, const std::string& help);
// One of these, by its name.
template <typename T>
using Choices = std::vector<std::pair<std::string, T>>;
template <typename T, typename Into>
CLI::Option* AddChoice(CLI::App& app, const std::string& option, Into& into, const Choices<T>& choices,
                       const std::string& help) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) names.push_back(name);
  return AddNames(
      app, option, names, [&into, choices](std::size_t i) { into = choices[i].second; }, help);
}

// Returns the name of the value of an option or argument, such as "FILE". Empty: it takes no value.
std::string ValueName(const CLI::Option& option);
// The names of an option's choices; none of other options.
std::vector<std::string> ChoicesOf(const CLI::Option& option);

// Parses the words behind the program's name. Returns the text of --help or --version, or nothing if the
// command is to run. Every error is one of usage. It names the word that nobody expects, and the word that
// may have been meant.
absl::StatusOr<std::string> Parse(CLI::App& app, const std::vector<std::string>& words);

// `text` as whole numbers between `separator`s; nothing if it is anything else, or has none.
std::optional<std::vector<std::int64_t>> ParseIntegers(std::string_view text, char separator);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_ARGS_H_
