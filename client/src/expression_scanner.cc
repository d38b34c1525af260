#include "client/src/expression_scanner.h"

#include <cmath>
#include <cstdint>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/src/enum_names.h"
#include "client/src/short_ids.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr std::size_t kMaxShown = 20;  // characters of the text in an error

}  // namespace

std::size_t ExpressionScanner::Start() {
  while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  return at_;
}

bool ExpressionScanner::Take(char c) {
  if (Start() == text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool ExpressionScanner::TakeSeparator() {
  const std::size_t end = at_;
  if (Take(';')) return true;
  return Start() < text_.size() && text_.substr(end, at_ - end).find('\n') != std::string_view::npos;
}

std::string ExpressionScanner::TakeWord() {
  const std::size_t start = Start();
  const auto belongs = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' ||
           c == '+' || c == ':';
  };
  while (at_ < text_.size() && belongs(text_[at_])) ++at_;
  return std::string(text_.substr(start, at_ - start));
}

std::string ExpressionScanner::TakeValue() {
  for (const char quote : {'"', '\''}) {
    const std::size_t start = Start();
    if (!Take(quote)) continue;
    std::string word = TakeWord();
    if (Take(quote)) return word;
    at_ = start;  // so that the error shows the quote
    return "";
  }
  return TakeWord();
}

std::string ExpressionScanner::TakeName() {
  const std::size_t start = Start();
  while (at_ < text_.size() && (absl::ascii_isalnum(static_cast<unsigned char>(text_[at_])) ||
                                text_[at_] == '_' || text_[at_] == '.')) {
    ++at_;
  }
  return std::string(text_.substr(start, at_ - start));
}

bool ExpressionScanner::TakeKey(std::string& key) {
  key = TakeName();
  if (IsName(key) && Take('=') && (at_ == text_.size() || text_[at_] != '=')) return true;
  key.clear();
  return false;
}

bool ExpressionScanner::IsName(const std::string& word) {
  return !word.empty() && word.find('+') == std::string::npos &&
         (absl::ascii_isalpha(static_cast<unsigned char>(word[0])) || word[0] == '_');
}

absl::Status ExpressionScanner::Expected(std::size_t at, const std::string& what) const {
  // Ids are shortened before the text is cut. Otherwise other digits of an id that was cut would be shown.
  const std::string found = WithShortIds(text_.substr(at)).substr(0, kMaxShown);
  return Error(at, absl::StrCat("expected ", what, ", found ",
                                found.empty() ? "the end" : absl::StrCat("'", absl::CHexEscape(found), "'")));
}

bool ExpressionScanner::IsNewLine(std::size_t end) {
  at_ = end;
  const std::size_t next = Start();
  if (brackets_ > 0 || text_.substr(end, next - end).find('\n') == std::string_view::npos) return false;
  at_ = end;
  return true;
}

absl::StatusOr<Tree> ExpressionScanner::TakeNumber() {
  const std::size_t start = Start();
  const auto take_digits = [&] {
    while (at_ < text_.size() && absl::ascii_isdigit(static_cast<unsigned char>(text_[at_]))) ++at_;
  };
  take_digits();
  bool whole = true;
  if (at_ < text_.size() && text_[at_] == '.') whole = false, ++at_, take_digits();
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    whole = false, ++at_;
    if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
    take_digits();
  }
  const std::string_view digits = text_.substr(start, at_ - start);
  const absl::string_view given(digits.data(), digits.size());
  Tree number{.at = start};
  std::int64_t integer = 0;
  if (!absl::SimpleAtod(given, &number.real)) return Expected(start, "a number");
  if (std::isinf(number.real)) {
    return Error(start, absl::StrCat(given, " is beyond the greatest number: write inf if you mean that"));
  }
  if (whole && !absl::SimpleAtoi(given, &integer)) {
    return Error(start, absl::StrCat(given, " is above 2^63 - 1, the greatest whole number"));
  }
  if (whole) number.integer = integer;
  return number;
}

absl::StatusOr<double> ExpressionScanner::Double() {
  constexpr std::uint64_t kGreatestExact = std::uint64_t{1} << 53;
  const std::size_t start = Start();
  const std::string word = TakeWord();
  double number = 0;
  if (!absl::SimpleAtod(word, &number)) return Expected(start, "a number");
  const std::string digits = word.substr(word[0] == '-' || word[0] == '+' ? 1 : 0);
  if (std::isinf(number) && absl::AsciiStrToLower(digits).substr(0, 3) != "inf") {
    return Error(start, absl::StrCat(word, " is beyond the greatest number: write inf if you mean that"));
  }
  std::uint64_t whole = 0;
  if (digits.find_first_not_of("0123456789") == std::string::npos &&
      (!absl::SimpleAtoi(digits, &whole) || whole > kGreatestExact)) {
    return Error(start, absl::StrCat(word, " may not be exact in f64, as it is above 2^53: write ", word,
                                     ".0 if it may be rounded"));
  }
  return number;
}

absl::StatusOr<bool> ExpressionScanner::Bool() {
  const std::size_t start = Start();
  const std::string word = TakeWord();
  const bool is_true = word == "true" || word == "True";
  if (!is_true && word != "false" && word != "False") return Expected(start, "true or false");
  return is_true;
}

absl::Status ExpressionScanner::TakeList(Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  const bool list = Take('[');
  if (list && Take(']')) return absl::OkStatus();
  do {
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
      ASSIGN_OR_RETURN(const std::int64_t number, Integer<std::int64_t>());
      reflection.AddInt64(&message, &field, number);
    } else {
      ASSIGN_OR_RETURN(const int number, Integer<int>());
      reflection.AddInt32(&message, &field, number);
    }
  } while (list && Take(','));
  return !list || Take(']') ? absl::OkStatus() : Expected("',' or ']'");
}

absl::Status ExpressionScanner::TakeField(Message& message, const FieldDescriptor& field) {
  if (field.is_repeated()) return TakeList(message, field);
  const auto& reflection = *message.GetReflection();
  const std::size_t start = Start();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: {
      ASSIGN_OR_RETURN(const int number, Integer<int>());
      reflection.SetInt32(&message, &field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      ASSIGN_OR_RETURN(const std::int64_t number, Integer<std::int64_t>());
      reflection.SetInt64(&message, &field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      ASSIGN_OR_RETURN(const double number, Double());
      reflection.SetDouble(&message, &field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      ASSIGN_OR_RETURN(const bool is_true, Bool());
      reflection.SetBool(&message, &field, is_true);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const std::optional<int> value = EnumValueNamed(*field.enum_type(), TakeValue());
      if (!value) return Expected(start, absl::StrJoin(EnumValueNames(*field.enum_type()), ", "));
      reflection.SetEnumValue(&message, &field, *value);
      return absl::OkStatus();
    }
    default:  // no operation has such a field
      return Error(start, absl::StrCat(field.name(), " cannot be given in an expression"));
  }
}

}  // namespace warpline::client
