#include "client/cli/args.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

absl::Status BadValue(std::string_view name, const std::string& value, std::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", std::string(name), "=", value, ": expected ", std::string(expected)));
}

const FlagSpec* Find(std::span<const FlagSpec> specs, std::string_view name) {
  const auto spec =
      std::find_if(specs.begin(), specs.end(), [&](const FlagSpec& s) { return s.name == name; });
  return spec == specs.end() ? nullptr : &*spec;
}

const FlagSpec* FindLetter(std::span<const FlagSpec> specs, char letter) {
  const auto spec =
      std::find_if(specs.begin(), specs.end(), [&](const FlagSpec& s) { return s.letter == letter; });
  return spec == specs.end() ? nullptr : &*spec;
}

}  // namespace

absl::StatusOr<Args> Args::Parse(std::span<const std::string_view> words, std::span<const FlagSpec> specs) {
  Args args;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--") {
      for (std::string_view rest : words.subspan(i + 1)) args.positionals_.emplace_back(rest);
      break;
    }
    if (word.size() < 2 || word[0] != '-') {
      args.positionals_.emplace_back(word);
      continue;
    }
    const FlagSpec* spec = nullptr;
    std::optional<std::string_view> value;
    if (word[1] == '-') {
      const std::size_t equals = word.find('=');
      spec = Find(specs, word.substr(2, equals == std::string_view::npos ? equals : equals - 2));
      if (equals != std::string_view::npos) value = word.substr(equals + 1);
    } else {
      spec = FindLetter(specs, word[1]);
      if (word.size() > 2) value = word.substr(word[2] == '=' ? 3 : 2);  // -oOUT, -o=OUT
    }
    if (spec == nullptr) return absl::InvalidArgumentError(absl::StrCat("unknown flag ", std::string(word)));
    if (!value && !spec->value.empty()) {
      if (i + 1 == words.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat(std::string(word), " needs a value: ", std::string(spec->value)));
      }
      value = words[++i];
    }
    args.values_[std::string(spec->name)].emplace_back(value.value_or("true"));
  }
  return args;
}

std::vector<std::string> Args::given() const {
  std::vector<std::string> names;
  for (const auto& [name, values] : values_) names.push_back(name);
  return names;
}

std::string Args::String(std::string_view name, std::string_view otherwise) const {
  const auto values = values_.find(name);
  return values == values_.end() ? std::string(otherwise) : values->second.back();
}

std::vector<std::string> Args::Strings(std::string_view name) const {
  const auto values = values_.find(name);
  return values == values_.end() ? std::vector<std::string>() : values->second;
}

absl::StatusOr<std::optional<double>> Args::Number(std::string_view name) const {
  if (!Has(name)) return std::nullopt;
  const std::string text = String(name, "");
  double number = 0;
  if (!absl::SimpleAtod(text, &number)) return BadValue(name, text, "a number");
  return number;
}

absl::StatusOr<std::int64_t> Args::Integer(std::string_view name, std::int64_t otherwise, std::int64_t least,
                                           std::int64_t most) const {
  if (!Has(name)) return otherwise;
  const std::string text = String(name, "");
  std::int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < least || number > most) {
    return BadValue(name, text, absl::StrCat("a whole number from ", least, " to ", most));
  }
  return number;
}

absl::StatusOr<absl::Duration> Args::Duration(std::string_view name, absl::Duration otherwise) const {
  if (!Has(name)) return otherwise;
  const std::string text = String(name, "");
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) || duration <= absl::ZeroDuration() ||
      duration == absl::InfiniteDuration()) {
    return BadValue(name, text, "a time above zero with its unit, as 5s or 200ms");
  }
  return duration;
}

absl::StatusOr<std::vector<int>> Args::Integers(std::string_view name) const {
  std::vector<int> numbers;
  if (!Has(name)) return numbers;
  const std::string text = String(name, "");
  const std::optional<std::vector<std::int64_t>> wide = ParseIntegers(text, ',');
  const auto fits = [](std::int64_t n) {
    return n >= std::numeric_limits<int>::min() && n <= std::numeric_limits<int>::max();
  };
  if (!wide || !std::all_of(wide->begin(), wide->end(), fits)) {
    return BadValue(name, text, "whole numbers with commas between them, as 1,0");
  }
  for (std::int64_t number : *wide) numbers.push_back(static_cast<int>(number));
  return numbers;
}

absl::StatusOr<bool> Args::Bool(std::string_view name) const {
  const std::string text = String(name, "false");
  if (text == "true") return true;
  if (text == "false") return false;
  return BadValue(name, text, "no value, true or false");
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
