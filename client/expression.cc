#include "client/expression.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/enum_names.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int kMaxSteps = 64;
constexpr std::size_t kMaxShown = 20;  // of the text, in an error

// The fields of Step that are operations.
const google::protobuf::OneofDescriptor& Operations() {
  return *v1::Step::descriptor()->FindOneofByName("operation");
}

std::string OperationNames() {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(Operations().field_count()));
  for (int i = 0; i < Operations().field_count(); ++i) names.push_back(Operations().field(i)->name());
  return absl::StrJoin(names, ", ");
}

int OperandsOf(const std::string& operation) { return operation == "gemm" || operation == "add" ? 2 : 1; }

// One pass over the text, adding a step at the end of each call.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<v1::Program> Parse() {
    while (true) {
      const std::size_t start = Start();
      std::string name;
      if (!TakeKey(name)) at_ = start;
      const std::size_t call = Start();
      ASSIGN_OR_RETURN(const std::string result, Operand());
      if (result != last_step_) return Error(call, "expected an operation with its operands in brackets");
      if (!name.empty()) program_.mutable_steps()->rbegin()->set_name(name);
      if (!Take(';')) break;
      if (name.empty()) return Error(start, "expected NAME = before all but the last operation");
    }
    if (Start() < text_.size()) return Expected("the end");
    *program_.add_outputs() = program_.steps().rbegin()->name();
    return std::move(program_);
  }

 private:
  struct Call {
    v1::Step step;
    Message* operation = nullptr;  // within the step
    std::set<std::string> given;   // names of the arguments
    std::string c, bias;
  };

  // Where the next word starts.
  std::size_t Start() {
    while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_;
  }
  bool Take(char c) {
    if (Start() == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // A run of the characters that names and numbers are made of; may be empty.
  std::string TakeWord() {
    const std::size_t start = Start();
    const auto belongs = [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' ||
             c == '+';
    };
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }
  // "key =". Otherwise false, at an unspecified position.
  bool TakeKey(std::string& key) {
    key = TakeWord();
    if (IsName(key) && Take('=')) return true;
    key.clear();
    return false;
  }

  static bool IsName(const std::string& word) {
    return !word.empty() && word.find('+') == std::string::npos &&
           (absl::ascii_isalpha(static_cast<unsigned char>(word[0])) || word[0] == '_');
  }

  static absl::Status Error(std::size_t at, const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("column ", at + 1, ": ", what));
  }
  absl::Status Expected(const std::string& what) { return Expected(Start(), what); }
  absl::Status Expected(std::size_t at, const std::string& what) const {
    const std::string found(text_.substr(at, kMaxShown));
    return Error(at,
                 absl::StrCat("expected ", what, ", found ",
                              found.empty() ? "the end" : absl::StrCat("'", absl::CHexEscape(found), "'")));
  }

  // Returns the name of the array that it stands for.
  absl::StatusOr<std::string> Operand() {
    const std::size_t start = Start();
    std::string word = TakeWord();
    if (!IsName(word)) return Expected(start, "an operation or a name");
    if (!Take('(')) return word;
    if (++depth_ > kMaxExpressionDepth) {
      return Error(start, absl::StrCat("more than ", kMaxExpressionDepth, " operations in one another"));
    }
    Call call;
    const FieldDescriptor* field = v1::Step::descriptor()->FindFieldByName(word);
    if (field == nullptr || field->real_containing_oneof() != &Operations()) {
      return Error(start, absl::StrCat("there is no operation ", word, ": expected ", OperationNames()));
    }
    call.operation = v1::Step::GetReflection()->MutableMessage(&call.step, field);
    RETURN_IF_ERROR(Arguments(call));
    RETURN_IF_ERROR(AddStep(start, word, call));
    --depth_;
    return last_step_;
  }

  // Up to the closing bracket.
  absl::Status Arguments(Call& call) {
    do {
      const std::size_t start = Start();
      std::string key;
      if (TakeKey(key)) {
        RETURN_IF_ERROR(Argument(start, key, call));
        continue;
      }
      at_ = start;
      if (!call.given.empty()) return Expected(start, "FIELD=VALUE, as operands come first");
      ASSIGN_OR_RETURN(*call.step.add_inputs(), Operand());
    } while (Take(','));
    return Take(')') ? absl::OkStatus() : Expected("',' or ')'");
  }

  absl::Status Argument(std::size_t start, std::string key, Call& call) {
    if (key == "dtype") key = "data_type";
    if (key == "out_dtype") key = "out_data_type";
    if (!call.given.insert(key).second) return Error(start, absl::StrCat(key, " is given twice"));
    if (key == "variant") {
      call.step.set_variant(TakeWord());
      return absl::OkStatus();
    }
    if (call.step.has_gemm() && (key == "c" || key == "bias")) {
      ASSIGN_OR_RETURN((key == "c" ? call.c : call.bias), Operand());
      return absl::OkStatus();
    }
    const FieldDescriptor* field = call.operation->GetDescriptor()->FindFieldByName(key);
    // has_bias is what bias= says.
    if (field == nullptr || key == "has_bias") return Error(start, UnknownArgument(key, call));
    return SetField(*call.operation, *field);
  }

  static std::string UnknownArgument(const std::string& key, const Call& call) {
    std::vector<std::string> names;
    const auto& type = *call.operation->GetDescriptor();
    names.reserve(static_cast<std::size_t>(type.field_count()) + 1);
    for (int i = 0; i < type.field_count(); ++i) {
      names.push_back(type.field(i)->name() == "has_bias" ? "c, bias" : type.field(i)->name());
    }
    names.emplace_back("variant");
    return absl::StrCat("there is no argument ", key, ": expected ", absl::StrJoin(names, ", "));
  }

  absl::Status SetField(Message& message, const FieldDescriptor& field) {
    const auto& reflection = *message.GetReflection();
    const std::size_t start = Start();
    if (field.is_repeated()) {
      const bool list = Take('[');
      if (list && Take(']')) return absl::OkStatus();
      do {
        ASSIGN_OR_RETURN(const int number, Integer());
        reflection.AddInt32(&message, &field, number);
      } while (list && Take(','));
      return !list || Take(']') ? absl::OkStatus() : Expected("',' or ']'");
    }
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32: {
        ASSIGN_OR_RETURN(const int number, Integer());
        reflection.SetInt32(&message, &field, number);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        double number = 0;
        if (!absl::SimpleAtod(TakeWord(), &number)) return Expected(start, "a number");
        reflection.SetDouble(&message, &field, number);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_BOOL: {
        const std::string word = TakeWord();
        if (word != "true" && word != "false") return Expected(start, "true or false");
        reflection.SetBool(&message, &field, word == "true");
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_ENUM: {
        const std::optional<int> value = EnumValueNamed(*field.enum_type(), TakeWord());
        if (!value) return Expected(start, absl::StrJoin(EnumValueNames(*field.enum_type()), ", "));
        reflection.SetEnumValue(&message, &field, *value);
        return absl::OkStatus();
      }
      default:  // no operation has such a field
        return Error(start, absl::StrCat(field.name(), " cannot be given in an expression"));
    }
  }

  absl::StatusOr<int> Integer() {
    const std::size_t start = Start();
    int number = 0;
    if (!absl::SimpleAtoi(TakeWord(), &number)) return Expected(start, "a whole number");
    return number;
  }

  absl::Status AddStep(std::size_t start, const std::string& operation, Call& call) {
    const int wanted = OperandsOf(operation), given = call.step.inputs_size();
    if (given != wanted) {
      return Error(start, absl::StrCat(operation, " has ", given, " operands instead of ", wanted));
    }
    if (!call.c.empty()) {
      v1::GemmStep& gemm = *call.step.mutable_gemm();
      if (!gemm.has_beta()) gemm.set_beta(1);
      if (gemm.beta() == 0) return Error(start, "with beta=0 there is no use for c");
      call.step.add_inputs(call.c);
    }
    if (!call.bias.empty()) {
      call.step.mutable_gemm()->set_has_bias(true);
      call.step.add_inputs(call.bias);
    }
    if (program_.steps_size() == kMaxSteps) {
      return Error(start, absl::StrCat("more than ", kMaxSteps, " operations"));
    }
    // No name that is written can start with a digit.
    last_step_ = absl::StrCat(program_.steps_size() + 1, ".", operation);
    call.step.set_name(last_step_);
    *program_.add_steps() = std::move(call.step);
    return absl::OkStatus();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  v1::Program program_;
  std::string last_step_;
};

}  // namespace

absl::StatusOr<v1::Program> ParseExpression(std::string_view text) { return Parser(text).Parse(); }

}  // namespace warpline::client
