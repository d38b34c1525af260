// The program that an expression becomes: the steps so far, and the types of their results.
#ifndef WARPLINE_CLIENT_SRC_EXPRESSION_PROGRAM_H_
#define WARPLINE_CLIENT_SRC_EXPRESSION_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/src/expression_call.h"
#include "client/src/expression_tree.h"
#include "kernels/dtype.h"
#include "kernels/program.h"
#include "warpline/program.h"
#include "warpline/requests.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// Returns an INVALID_ARGUMENT error with the column of the text.
absl::Status ColumnError(std::size_t at, const std::string& what);

// Positions `at` are those in the text, for errors.
class ExpressionProgram {
 public:
  // Keeps a reference to the inputs, whose types may be needed.
  explicit ExpressionProgram(const ProgramInputs& inputs) : inputs_(inputs) {}

  // Adds a step, and returns its result. `operation` is the base of the step's name if it gets no other.
  absl::StatusOr<Tree> Add(std::size_t at, v1::Step step, const std::string& operation);
  // Adds the step of a call whose arguments are complete.
  absl::StatusOr<Tree> AddCall(std::size_t at, ExpressionCall& call);
  // Makes an elementwise operation. If the tree is too large for one map, its operands become separate steps.
  absl::StatusOr<Tree> Elementwise(std::size_t at, const MapOpRow& row, std::vector<Tree> operands);
  // Returns the name of the array that a tree represents. This may add a step.
  absl::StatusOr<std::string> NameOf(const Tree& tree);
  // Adds an array of one value, and returns its name.
  absl::StatusOr<std::string> Constant(const Tree& number, DType dtype,
                                       absl::Span<const std::int64_t> sizes = {});

  // Returns the type of an array, for `what` needs to know it. FAILED_PRECONDITION if the text alone does not
  // say it, because it depends on inputs that are not known.
  absl::StatusOr<TensorSpec> TypeOf(std::size_t at, const std::string& what, const std::string& name) const;

  // Gives the last step a name.
  void NameLastStep(const std::string& name) { program_.mutable_steps()->rbegin()->set_name(name); }
  const std::string& LastName() const { return program_.steps().rbegin()->name(); }
  // Returns the name that the last step had when it was added.
  const std::string& last_step() const { return last_step_; }
  // Returns the program with this output. Nothing may be called after it.
  v1::Program Finish(const std::string& output);

 private:
  // Replaces numbers among the operands and the last operand by arrays of the type that belongs there.
  absl::Status MakeArrays(std::size_t at, ExpressionCall& call);

  const ProgramInputs& inputs_;
  v1::Program program_;
  std::string last_step_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_EXPRESSION_PROGRAM_H_
