// The parts of the `warpline` command line that CLI11 lacks: types of options, and errors for unexpected
// words.
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

// Each file that includes CLI11's headers takes several times as long to compile with sanitizers. Files that
// only declare options or pass them on need just these declarations.
namespace CLI {
class App;
class FormatterBase;
class Option;
}  // namespace CLI

namespace warpline::client {

// Functions that add options. `names` is in CLI11's form: "-o,--output". A wrong value is a parse error that
// names the option and the value, and says what is expected.

// A time such as "5s", "1.5m" or "200ms". It must be finite, and above zero or at least zero.
enum class Least { kAboveZero, kZero };
CLI::Option* AddTime(CLI::App& app, const std::string& names, absl::Duration& into, const std::string& help,
                     Least least = Least::kAboveZero);
// A list of integers such as "1,0" or "-1".
CLI::Option* AddIntegers(CLI::App& app, const std::string& names, std::vector<int>& into,
                         const std::string& help);
// Checks that the value of a file option is not itself an option, as in "-o --timings", where the value was
// forgotten. A file of that name is written as "./--timings". Returns the error text; empty if there is none.
std::string NotAnOption(const std::string& value);
// `into` stays unset if the option is not given.
CLI::Option* AddNumber(CLI::App& app, const std::string& names, std::optional<double>& into,
                       const std::string& help);
// The value must be one of the names, in upper or lower case. `choose` gets its index.
CLI::Option* AddNames(CLI::App& app, const std::string& option, const std::vector<std::string>& names,
                      std::function<void(std::size_t)> choose, const std::string& help);
// The value must be the name of one of the choices.
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

// Returns the placeholder for the value of an option or argument, such as "FILE". Empty if it has no value.
std::string ValueName(const CLI::Option& option);
// Returns the names of an option's choices; an empty list for other options.
std::vector<std::string> ChoicesOf(const CLI::Option& option);

// Parses the words after the program's name. Returns the text of --help or --version, or nothing if the
// command must run. Every error is a usage error. It names the unexpected word, and a similar word that may
// have been meant.
absl::StatusOr<std::string> Parse(CLI::App& app, const std::vector<std::string>& words);

// Parses `text` as integers separated by `separator`. Returns nothing if it contains anything else, or no
// integers.
std::optional<std::vector<std::int64_t>> ParseIntegers(std::string_view text, char separator);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_ARGS_H_
