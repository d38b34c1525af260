// The table of steps. The rules, the parser of expressions and the help of the command line read it.
#ifndef WARPLINE_PROTO_RULES_STEP_TABLE_H_
#define WARPLINE_PROTO_RULES_STEP_TABLE_H_

#include <span>
#include <string_view>

#include "warpline/v1/warpline.pb.h"

namespace warpline {

enum class StepKind {
  kView,         // the result is a view of the input, if that is possible
  kElementwise,  // each element of the result depends on one position of the inputs
  kKernel,       // one step of the server that is neither
  kSteps,        // consists of other steps of the server, with a variant for those that have kernels
  kCopies,       // same, but all of these steps are copies, which have no variants
};

inline constexpr int kAnyNumber = -1;  // of operands

struct StepRow {
  v1::Step::OperationCase operation;
  std::string_view name;  // that of the field in Step
  StepKind kind;
  int operands;                    // without optional ones
  std::string_view call;           // how expressions write it
  std::string_view help;           // its arguments, in lines of at most 96 characters
  std::string_view required = {};  // a field that must be given; empty: none
  std::string_view example = {};   // how expressions write this field
};

// Returns the rows in the order of the fields of Step. There is one for each.
std::span<const StepRow> StepTable();
// Returns null for a step without an operation.
const StepRow* RowOf(const v1::Step& step);
const StepRow* StepNamed(std::string_view name);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_STEP_TABLE_H_
