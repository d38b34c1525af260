// The words of an expression: names, numbers, values of fields, and errors that say where they are.
#ifndef WARPLINE_CLIENT_SRC_EXPRESSION_SCANNER_H_
#define WARPLINE_CLIENT_SRC_EXPRESSION_SCANNER_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "client/src/expression_program.h"
#include "client/src/expression_tree.h"

namespace warpline::client {

// Errors are INVALID_ARGUMENT, with the column.
class ExpressionScanner {
 protected:
  explicit ExpressionScanner(std::string_view text) : text_(text) {}

  // Moves to the next word, and returns where it starts.
  std::size_t Start();
  // Outside of brackets, the end of a line ends an expression. `end` is the position after the last token.
  // Returns true if the next token is on another line; then the position stays at `end`.
  bool IsNewLine(std::size_t end);
  bool Take(char c);
  // Takes a ';', or an end of line if something follows it.
  bool TakeSeparator();
  // Takes a run of the characters that occur in names and numbers; may be empty.
  std::string TakeWord();
  // Takes a word, which may be quoted, as in Python. Empty if there is none.
  std::string TakeValue();
  // Takes a name. A '-' is not part of a name: it is an operator.
  std::string TakeName();
  // Takes "key =" but not "key ==". Otherwise returns false, at an unspecified position.
  bool TakeKey(std::string& key);
  // Takes a number without a sign. An integer has no point and no exponent.
  absl::StatusOr<Tree> TakeNumber();
  // Takes the value of a field whose type is not string: a number, a word or a list in brackets.
  absl::Status TakeField(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field);
  // Takes a whole number with or without a sign.
  template <typename T>
  absl::StatusOr<T> Integer() {
    const std::size_t start = Start();
    T number = 0;
    if (!absl::SimpleAtoi(TakeWord(), &number)) return Expected(start, "a whole number");
    return number;
  }
  // Refuses a number that a double cannot represent exactly, instead of rounding it silently.
  absl::StatusOr<double> Double();
  absl::StatusOr<bool> Bool();

  static bool IsName(const std::string& word);
  static absl::Status Error(std::size_t at, const std::string& what) { return ColumnError(at, what); }
  absl::Status Expected(const std::string& what) { return Expected(Start(), what); }
  absl::Status Expected(std::size_t at, const std::string& what) const;

  const std::string_view text_;
  std::size_t at_ = 0;
  int brackets_ = 0;

 private:
  absl::Status TakeList(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field);
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_EXPRESSION_SCANNER_H_
