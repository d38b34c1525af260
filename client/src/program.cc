#include "warpline/program.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/src/enum_names.h"
#include "client/src/expression_call.h"
#include "client/src/expression_functions.h"
#include "client/src/expression_index.h"
#include "client/src/expression_program.h"
#include "client/src/expression_scanner.h"
#include "client/src/expression_tree.h"
#include "kernels/map/operations.h"
#include "kernels/problem.h"
#include "kernels/status_macros.h"
#include "proto/rules/step_table.h"

namespace warpline::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Parses the text in one pass. Adds a step at the end of each call.
class Parser : ExpressionScanner {
 public:
  Parser(std::string_view text, const ProgramInputs& inputs) : ExpressionScanner(text), program_(inputs) {}

  absl::StatusOr<v1::Program> Parse() {
    while (true) {
      const std::size_t start = Start();
      std::string name;
      if (!TakeKey(name)) at_ = start;
      const std::size_t call = Start();
      ASSIGN_OR_RETURN(const Tree tree, Expression());
      RETURN_IF_ERROR(CheckEnd());
      ASSIGN_OR_RETURN(const std::string result, program_.NameOf(tree));
      if (result != program_.last_step()) {
        // At the end of the text, a name alone says what the program returns.
        TakeSeparator();
        const bool names_a_result = name.empty() && steps_.count(result) > 0 && Start() == text_.size();
        if (!names_a_result) return Error(call, "expected an operation: there is nothing to compute");
        return program_.Finish(result);
      }
      if (!name.empty()) {
        // The name would mean an input before this step and a result after it. But a request identifies its
        // inputs by name alone.
        if (inputs_.count(name) > 0) {
          return Error(start, absl::StrCat(name, " was read as an input before: name the result otherwise"));
        }
        program_.NameLastStep(name);
        steps_.insert(name);
      }
      if (!TakeSeparator() || Start() == text_.size()) break;
      if (name.empty()) return Error(start, "expected NAME = before all but the last operation");
    }
    return program_.Finish(program_.LastName());
  }

 private:
  // The end of the text or a separator must follow an expression.
  absl::Status CheckEnd() {
    const std::size_t end = at_, next = Start();
    const bool ends = next == text_.size() || text_[next] == ';' ||
                      text_.substr(end, next - end).find('\n') != std::string_view::npos;
    if (!ends) return Expected(next, "an operator or the end");
    at_ = end;
    return absl::OkStatus();
  }

  using Call = ExpressionCall;

  // Counts how deeply operations and brackets are nested.
  struct DepthGuard {
    explicit DepthGuard(int& depth) : depth(depth) { ++depth; }
    ~DepthGuard() { --depth; }
    DepthGuard(const DepthGuard&) = delete;
    DepthGuard& operator=(const DepthGuard&) = delete;
    int& depth;
  };

  // Parses an operand, and the infix operators of at least this level that follow it.
  absl::StatusOr<Tree> Expression(int least = 0) {
    ASSIGN_OR_RETURN(Tree left, Signed());
    for (bool is_compared = false;;) {
      const std::size_t end = at_;
      if (IsNewLine(end)) return left;
      const std::size_t start = at_;
      if (least <= kTightestLevel && Take('@')) {
        ASSIGN_OR_RETURN(left, Product(start, left));
        continue;
      }
      const InfixOperator* const infix = InfixAt(text_.substr(at_));
      if (infix == nullptr || infix->level < least) {
        at_ = end;  // an end of line may be a separator
        return left;
      }
      if (infix->level == 0 && std::exchange(is_compared, true)) {
        return Error(start, "comparisons do not chain: use brackets and &");
      }
      at_ += infix->text.size();
      ASSIGN_OR_RETURN(Tree right, Expression(infix->level + 1));
      ASSIGN_OR_RETURN(left,
                       program_.Elementwise(start, RowOf(infix->op), {std::move(left), std::move(right)}));
    }
  }

  // Parses the operand after the @.
  absl::StatusOr<Tree> Product(std::size_t start, const Tree& left) {
    ASSIGN_OR_RETURN(const Tree right, Expression(kTightestLevel + 1));
    v1::Step step;
    step.mutable_gemm();
    ASSIGN_OR_RETURN(*step.add_inputs(), program_.NameOf(left));
    ASSIGN_OR_RETURN(*step.add_inputs(), program_.NameOf(right));
    return program_.Add(start, std::move(step), "gemm");
  }

  // Parses signs and powers, which bind more tightly than infix operators.
  absl::StatusOr<Tree> Signed() {
    const std::size_t start = Start();
    const DepthGuard deeper(depth_);
    if (at_ < text_.size() && std::string_view("-+~").find(text_[at_]) != std::string_view::npos) {
      RETURN_IF_ERROR(CheckDepth(start));
    }
    if (Take('-')) {
      ASSIGN_OR_RETURN(Tree x, Signed());
      if (!x.is_number()) return program_.Elementwise(start, RowOf(MapOp::kNegative), {std::move(x)});
      x.real = -x.real;
      if (x.integer.has_value()) x.integer = -*x.integer;
      return x;
    }
    if (Take('+')) return Signed();
    if (Take('~')) {
      ASSIGN_OR_RETURN(Tree x, Signed());
      return program_.Elementwise(start, RowOf(MapOp::kBitwiseInvert), {std::move(x)});
    }
    ASSIGN_OR_RETURN(Tree x, WithIndices());
    const std::size_t end = at_;
    if (IsNewLine(end) || text_.substr(Start(), 2) != "**") {
      at_ = end;
      return x;
    }
    at_ += 2;
    RETURN_IF_ERROR(CheckDepth(start));
    ASSIGN_OR_RETURN(Tree power, Signed());
    return program_.Elementwise(start, RowOf(MapOp::kPow), {std::move(x), std::move(power)});
  }

  // Parses an operand, and the indices in brackets that follow it in the same line.
  absl::StatusOr<Tree> WithIndices() {
    ASSIGN_OR_RETURN(Tree x, Atom());
    while (true) {
      const std::size_t end = at_;
      if (IsNewLine(end) || !Take('[')) {
        at_ = end;
        return x;
      }
      RETURN_IF_ERROR(CheckDepth(end));
      const DepthGuard inside(brackets_);
      ASSIGN_OR_RETURN(x, Index(end, x));
    }
  }

  // Parses an index behind its bracket: one array, or ranges and places of axes.
  absl::StatusOr<Tree> Index(std::size_t start, const Tree& of) {
    ASSIGN_OR_RETURN(const std::string x, program_.NameOf(of));
    std::vector<IndexPart> parts;
    do {
      IndexPart part{.at = Start()};
      Tree array;
      RETURN_IF_ERROR(TakePart(part, array));
      if (!array.name.empty()) {
        if (!parts.empty() || !Take(']')) {
          return Error(part.at,
                       "an array is an index only alone, as in x[mask]: take(x, i, axis=1) takes places "
                       "along an axis");
        }
        return Indexed(program_, start, x, array.name);
      }
      parts.push_back(part);
    } while (Take(','));
    if (!Take(']')) return Expected("',' or ']'");
    return Indexed(program_, start, x, parts);
  }

  absl::Status TakePart(IndexPart& part, Tree& array) {
    part.is_ellipsis = text_.substr(at_, 3) == "...";
    if (part.is_ellipsis) {
      at_ += 3;
      return absl::OkStatus();
    }
    if (at_ < text_.size() && text_[at_] != ':') {
      ASSIGN_OR_RETURN(const Tree first, Expression());
      if (!first.is_number()) {
        ASSIGN_OR_RETURN(array.name, program_.NameOf(first));
        return absl::OkStatus();
      }
      if (!first.integer.has_value()) return Error(part.at, "expected a whole number as an index");
      part.place = part.start = first.integer;
    }
    if (!Take(':')) return absl::OkStatus();
    part.place.reset();
    RETURN_IF_ERROR(TakeBound(part.end));
    std::optional<std::int64_t> step;
    const std::size_t behind = at_;
    if (Take(':')) RETURN_IF_ERROR(TakeBound(step));
    part.step = step.value_or(1);
    return part.step == 0 ? Error(behind, "the step of a range is not 0") : absl::OkStatus();
  }

  // Parses the end or the step of a range, which may be left out.
  absl::Status TakeBound(std::optional<std::int64_t>& bound) {
    const std::size_t start = Start();
    if (at_ == text_.size() || std::string_view(":,]").find(text_[at_]) != std::string_view::npos) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const Tree number, Expression());
    if (!number.is_number() || !number.integer.has_value()) {
      return Error(start, "expected a whole number, as a bound of a range");
    }
    bound = number.integer;
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Operand() {
    ASSIGN_OR_RETURN(const Tree tree, Expression());
    return program_.NameOf(tree);
  }

  absl::StatusOr<Tree> Atom() {
    const std::size_t start = Start();
    if (Take('(')) {
      RETURN_IF_ERROR(CheckDepth(start));
      const DepthGuard inside(brackets_);
      ASSIGN_OR_RETURN(Tree inner, Expression());
      if (!Take(')')) return Expected("')'");
      return inner;
    }
    if (at_ < text_.size() &&
        (absl::ascii_isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.')) {
      return TakeNumber();
    }
    const std::string word = TakeName();
    if (!IsName(word)) return Expected(start, "an operation or a name");
    if (absl::EndsWith(word, ".T")) {
      return Error(start, absl::StrCat("there is no attribute T: transpose(", word.substr(0, word.size() - 2),
                                       ") swaps the last two axes"));
    }
    if (word == "inf") return Tree{.at = start, .real = std::numeric_limits<double>::infinity()};
    if (word == "nan") return Tree{.at = start, .real = std::numeric_limits<double>::quiet_NaN()};
    if (word == "and" || word == "or" || word == "not") {
      return Error(start, absl::StrCat(word, " is no operator here: &, | and ~ work element by element"));
    }
    if (IsNewLine(at_) || !Take('(')) {
      if (steps_.count(word) == 0) inputs_.insert(word);
      return Tree{.at = start, .name = word};
    }
    const DepthGuard inside(brackets_);
    RETURN_IF_ERROR(CheckDepth(start));
    const StepRow* const row = StepNamed(word);
    const bool is_operation = row != nullptr && row->operation != v1::Step::kMap;
    if (!is_operation && ElementwiseNamed(word) != nullptr)
      return ElementwiseCall(start, *ElementwiseNamed(word));
    if (const FunctionRow* const function = FunctionNamed(word)) return CallOf(start, *function);
    Call call;
    call.name = word;
    if (is_operation) {
      call.operation = v1::Step::GetReflection()->MutableMessage(
          &call.step, v1::Step::descriptor()->FindFieldByNumber(row->operation));
    } else if (const std::optional<int> reduction = EnumValueNamed(*v1::ReduceOp_descriptor(), word)) {
      call.step.mutable_reduce()->set_op(static_cast<v1::ReduceOp>(*reduction));
      call.operation = call.step.mutable_reduce();
    } else {
      return Error(start, absl::StrCat("there is no operation ", word, ": expected ", OperationNames()));
    }
    RETURN_IF_ERROR(Arguments(call));
    return program_.AddCall(start, call);
  }

  // Parses the operand and the arguments of a function that is made of several steps.
  absl::StatusOr<Tree> CallOf(std::size_t start, const FunctionRow& row) {
    FunctionCall call{.at = start};
    ASSIGN_OR_RETURN(call.x, Operand());
    std::set<std::string> given;
    while (Take(',')) {
      const std::size_t next = Start();
      std::string key;
      if (!TakeKey(key))
        return Error(next, absl::StrCat(std::string(row.name), " has 1 operand, and then FIELD=VALUE"));
      if (!row.Takes(key)) {
        return Error(next, absl::StrCat(std::string(row.name), " has no argument ", key, ": expected ",
                                        row.arguments.empty() ? "none" : std::string(row.arguments)));
      }
      if (!given.insert(key).second) return Error(next, absl::StrCat(key, " is given twice"));
      if (key == "axis") {
        ASSIGN_OR_RETURN(call.axis, Integer<int>());
      } else if (key == "q") {
        ASSIGN_OR_RETURN(call.q, Double());
      } else {
        ASSIGN_OR_RETURN(call.keepdims, Bool());
      }
    }
    if (!Take(')')) return Expected("',' or ')'");
    return row.make(program_, call);
  }

  // Parses the operands of an elementwise operation, and an optional variant=, which makes it a separate
  // step.
  absl::StatusOr<Tree> ElementwiseCall(std::size_t start, const MapOpRow& row) {
    std::vector<Tree> operands;
    std::string variant;
    do {
      const std::size_t next = Start();
      std::string key;
      if (TakeKey(key)) {
        if (key != "variant") {
          return Error(next,
                       absl::StrCat(std::string(row.name), " has no argument ", key, ": expected variant"));
        }
        const std::size_t value = Start();
        variant = TakeValue();
        if (variant.empty()) return Expected(value, "a variant's name");
        break;
      }
      at_ = next;
      ASSIGN_OR_RETURN(operands.emplace_back(), Expression());
    } while (Take(','));
    if (!Take(')')) return Expected("',' or ')'");
    if (static_cast<int>(operands.size()) != row.operands) {
      return Error(start, absl::StrCat(std::string(row.name), " has ", operands.size(),
                                       " operands instead of ", row.operands));
    }
    ASSIGN_OR_RETURN(const Tree tree, program_.Elementwise(start, row, std::move(operands)));
    if (variant.empty()) return tree;
    v1::Step step = *MapStepOf(tree);
    step.set_variant(variant);
    return program_.Add(start, std::move(step), std::string(row.name));
  }

  absl::Status CheckDepth(std::size_t start) const {
    if (depth_ <= kMaxSteps) return absl::OkStatus();
    return Error(start, absl::StrCat("more than ", kMaxSteps, " operations in one another"));
  }

  // Parses arguments up to the closing bracket.
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
      ASSIGN_OR_RETURN(call.operands.emplace_back(), Expression());
    } while (Take(','));
    return Take(')') ? absl::OkStatus() : Expected("',' or ')'");
  }

  absl::Status Argument(std::size_t start, std::string key, Call& call) {
    if (key == "dtype") key = "data_type";
    if (key == "out_dtype") key = "out_data_type";
    if (key == "axis" && call.step.has_reduce()) key = "axes";
    if (!call.given.insert(key).second) return Error(start, absl::StrCat(ShortName(key), " is given twice"));
    if (key == "variant") {
      const std::size_t value = Start();
      call.step.set_variant(TakeValue());
      return call.step.variant().empty() ? Expected(value, "a variant's name") : absl::OkStatus();
    }
    if (call.step.has_gemm() && (key == "c" || key == "bias")) {
      ASSIGN_OR_RETURN((key == "c" ? call.c : call.bias), Operand());
      return absl::OkStatus();
    }
    if ((call.step.has_searchsorted() && key == "sorter") || (call.step.has_pad() && key == "values")) {
      ASSIGN_OR_RETURN(call.last, Expression());
      return absl::OkStatus();
    }
    const FieldDescriptor* field = call.operation->GetDescriptor()->FindFieldByName(key);
    // The arguments bias= and sorter= set has_bias and has_sorter, and the name of a reduction sets op.
    if (field == nullptr || key == "has_bias" || key == "has_sorter" || (key == "op" && !call.TakesOp()))
      return Error(start, UnknownArgument(key, call));
    return SetField(*call.operation, *field);
  }

  absl::Status SetField(Message& message, const FieldDescriptor& field) {
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_STRING) return TakeField(message, field);
    const std::size_t start = Start();
    const std::string name = TakeName();  // of an additional result
    if (!IsName(name)) return Expected(start, "a name");
    if (inputs_.count(name) > 0) {
      return Error(start, absl::StrCat(name, " was read as an input before: name the result otherwise"));
    }
    steps_.insert(name);
    message.GetReflection()->SetString(&message, &field, name);
    return absl::OkStatus();
  }

  int depth_ = 0;
  ExpressionProgram program_;
  std::set<std::string> steps_, inputs_;  // names in the text
};

}  // namespace

absl::StatusOr<v1::Program> ParseExpression(std::string_view text, const ProgramInputs& inputs) {
  return Parser(text, inputs).Parse();
}

}  // namespace warpline::client
