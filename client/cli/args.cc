#include "client/cli/args.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/error.h"
#include "kernels/nearest_name.h"

namespace warpline::client {
namespace {

// Returns the error text for a word that `app` did not expect.
std::string Unexpected(const CLI::App& app, const std::string& word) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  const CLI::App& command = parsed.empty() ? app : *parsed.front();
  const std::string typed = word.substr(0, word.find('='));
  std::vector<std::string> names;
  std::string text;
  if (word.size() > 1 && word[0] == '-') {
    text = parsed.empty() ? absl::StrCat("unknown flag ", word)
                          : absl::StrCat(word, " is not a flag of ", command.get_name());
    for (const CLI::App* each : {&app, &command}) {
      for (const CLI::Option* option : each->get_options()) {
        if (option->check_name(typed)) {
          return absl::StrCat(word, ": flags of ", command.get_name(), " must stand after it and before --");
        }
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
      }
    }
  } else if (parsed.empty()) {
    text = absl::StrCat("unknown command ", word);
    for (const CLI::App* each : app.get_subcommands({})) names.push_back(each->get_name());
  } else {
    return absl::StrCat(command.get_name(), " takes no further argument: ", word);
  }
  const std::string nearest = NearestName(typed, names);
  return nearest.empty() ? text : absl::StrCat(text, ": did you mean ", nearest, "?");
}

}  // namespace

CLI::Option* AddTime(CLI::App& app, const std::string& names, absl::Duration& into, const std::string& help,
                     Least least) {
  const auto parse = [=, &into](const std::string& text) {
    if (absl::ParseDuration(text, &into) && into < absl::InfiniteDuration() &&
        (least == Least::kZero ? into >= absl::ZeroDuration() : into > absl::ZeroDuration())) {
      return;
    }
    throw CLI::ValidationError(
        names, absl::StrCat(text, " is not a time ", least == Least::kZero ? "of zero or more" : "above zero",
                            " with a unit, such as 5s or 200ms"));
  };
  return app.add_option_function<std::string>(names, parse, help)->type_name("TIME");
}

CLI::Option* AddIntegers(CLI::App& app, const std::string& names, std::vector<int>& into,
                         const std::string& help) {
  const auto parse = [=, &into](const std::string& text) {
    const std::optional<std::vector<std::int64_t>> wide = ParseIntegers(text, ',');
    const auto fits = [](std::int64_t number) { return number == static_cast<int>(number); };
    if (!wide || !std::all_of(wide->begin(), wide->end(), fits)) {
      throw CLI::ValidationError(names, text + " is not a list of whole numbers, such as 1,0");
    }
    into.assign(wide->begin(), wide->end());
  };
  return app.add_option_function<std::string>(names, parse, help)->type_name("AXES");
}

std::string NotAnOption(const std::string& value) {
  if (value.size() < 2 || value.front() != '-') return "";
  return value + " is an option; if it is a file, write ./" + value;
}

CLI::Option* AddNumber(CLI::App& app, const std::string& names, std::optional<double>& into,
                       const std::string& help) {
  const auto parse = [=, &into](const std::string& text) {
    double number = 0;
    if (!absl::SimpleAtod(text, &number)) throw CLI::ValidationError(names, text + " is not a number");
    // Digits that are too large become infinity. An infinity that the user asked for has no digits.
    if (std::isinf(number) && std::any_of(text.begin(), text.end(), absl::ascii_isdigit)) {
      throw CLI::ValidationError(names, text + " is not between -1.8e308 and 1.8e308");
    }
    into = number;
  };
  return app.add_option_function<std::string>(names, parse, help)->type_name("FLOAT");
}

// CLI11 appends the description of an option's checks to the type name, as in "NAME:{sum,prod}".
CLI::Option* AddNames(CLI::App& app, const std::string& option, const std::vector<std::string>& names,
                      std::function<void(std::size_t)> choose, const std::string& help) {
  const auto find = [names, choose = std::move(choose)](const std::string& name) {
    choose(static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin()));
  };
  // The transform changes the name to lower case.
  return app.add_option_function<std::string>(option, find, help)
      ->transform(CLI::IsMember(names, CLI::ignore_case))
      ->type_name("NAME");
}

std::string ValueName(const CLI::Option& option) {
  if (option.get_type_size_max() == 0) return "";
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::vector<std::string> ChoicesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{');
  if (open == std::string::npos) return {};
  return absl::StrSplit(type.substr(open + 1, type.find('}') - open - 1), ',');
}

absl::StatusOr<std::string> Parse(CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> reversed;
  bool has_ended = false;  // no flags can follow
  for (const std::string& word : words) {
    has_ended = has_ended || word == "--";
    const std::size_t equals = word.find('=');
    // CLI11 would take the word after "--name=" as its value, and "=value" as that of "-n=value".
    const bool is_long = word.starts_with("--") && equals == word.size() - 1;
    if (!has_ended && (is_long || (word.starts_with('-') && equals == 2))) {
      reversed.push_back(word.substr(0, equals));
      reversed.push_back(word.substr(equals + 1));
    } else {
      reversed.push_back(word);
    }
  }
  std::reverse(reversed.begin(), reversed.end());
  std::string error;
  try {
    app.parse(std::move(reversed));
    return std::string();
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::CallForVersion& version) {
    return std::string(version.what());
  } catch (const CLI::ParseError& parse_error) {
    error = parse_error.what();
  }
  // If a flag is misspelled, report that instead of the missing flag.
  for (const std::string& word : app.remaining(/*recurse=*/true)) {
    if (!word.empty() && word != "--") return UsageError(Unexpected(app, word));
  }
  return UsageError(error);
}

std::optional<std::vector<std::int64_t>> ParseIntegers(std::string_view text, char separator) {
  std::vector<std::int64_t> numbers;
  while (true) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return std::nullopt;
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return numbers;
    if (text.front() != separator) return std::nullopt;
    text.remove_prefix(1);
  }
}

}  // namespace warpline::client
