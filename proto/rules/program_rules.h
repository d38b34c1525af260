// The rules of a program of several steps: names, counts, each step's operation, and what is used. Pure.
#ifndef WARPLINE_PROTO_RULES_PROGRAM_RULES_H_
#define WARPLINE_PROTO_RULES_PROGRAM_RULES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/rules/convert_step.h"
#include "proto/rules/step_options.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// Maximum numbers of steps and of inputs of a program. GetInfo tells them.
inline constexpr int kMaxSteps = 256;
inline constexpr std::size_t kMaxInputs = 128;
inline constexpr int kMaxOutputs = 256;
// Maximum number of kernels of a program: a step that joins arrays has one for each of them, and a view may
// need one that copies it.
inline constexpr int kMaxKernels = 1024;

// The further results of a step: their names, and the fields of its operation that have these.
struct FurtherName {
  std::string field;
  const std::string* name;
};
std::vector<FurtherName> FurtherNames(const v1::Step& step);

// INVALID_ARGUMENT if a program has too many inputs.
absl::Status CheckInputCount(std::size_t count);

// Checks one program, part by part: first each input, then the steps, the outputs, and what is used. The
// first rule that is broken is the one reported. Tensors are numbered as in Program::tensors: the inputs,
// then the results of steps. Views are no tensors; where a reader needs one, a step is added that copies it.
//
// In a client, operands may be unknown: a resident tensor of which only the id is known, or the result of a
// step of a newer API. A step that reads one, or is of a newer API itself, is checked as far as its operands
// do not matter, and its result is unknown.
class ProgramRules {
 public:
  // Keeps a reference to the program. `foreign_steps`: steps with fields of a newer API
  // are no error. Values of enumerations that are not known here are.
  explicit ProgramRules(const v1::Program& program, bool foreign_steps = false)
      : program_(program), foreign_steps_(foreign_steps) {}

  // Adds the next input. `name` is kept as a reference. `read` returns the input, or nothing if it is
  // unknown; `field` is its name in errors.
  using ReadInput = absl::FunctionRef<absl::StatusOr<std::optional<Operand>>(const std::string& field)>;
  absl::Status AddInput(const std::string& name, ReadInput read);

  // Checks all steps. `add` is called for what runs, in order, where operands are known. The output of a step
  // is a new tensor, or one that the steps before it wrote parts of.
  using AddStep = absl::FunctionRef<void(ConvertedStep step, const std::string& variant)>;
  absl::Status CheckSteps(ScalarReader scalars, AddStep add);

  // Checks the outputs, which may add steps, too. `add` is called for each, in their order, with its result:
  // a dense tensor that no other output has, and the shape to return it with. Its errors end the checks.
  using AddOutput = absl::FunctionRef<absl::Status(const std::string& field, const std::string& name,
                                                   const std::optional<Operand>& result)>;
  absl::Status CheckOutputs(AddStep add_step, AddOutput add);

  // Each step, and with it each input, must go into some output: what does not is a mistake, or wasted work.
  absl::Status CheckAllUsed() const;

  // The names of the steps, in their order.
  std::vector<std::string> StepNames() const;

 private:
  // An input or a result of a step: a tensor or a view of one.
  struct Value {
    const std::string* name;
    int step = -1;         // -1 for an input
    int further = 0;       // number of the first further result of the step; for its own result only
    bool is_made = false;  // the input has been read, or the step has been checked
    std::optional<Operand> operand;  // of a made one, if it is known
    std::optional<Operand> copy;     // a dense tensor of a view, if a reader has needed one
    std::optional<Operand> turned;   // a view of a dense tensor that a map reads along its rows
    std::vector<int> reads;          // numbers of the values that the step reads
  };
  // The views that a reader can read where they lie.
  enum class Takes { kViews, kMatrices, kRows };

  absl::Status NameSteps();
  absl::Status NameFurther(int step);
  // The field of the name of value `number`, which is a result.
  std::string NameField(int number) const;
  absl::Status Define(const std::string& field, Value value);
  absl::StatusOr<int> Find(const std::string& field, const std::string& name, int reader) const;
  absl::Status CheckStep(int index, ScalarReader scalars, AddStep add);
  // The value as the reader can take it.
  absl::StatusOr<std::optional<Operand>> OperandFor(Value& value, Takes takes, bool elementwise, int reader,
                                                    AddStep add);
  absl::StatusOr<Operand> CopyFor(Value& value, int reader, AddStep add);
  // The result of a step that is a view; nothing if its operand is unknown.
  absl::StatusOr<std::optional<Operand>> CheckView(const v1::Step& step, const OperandList& inputs, Value& of,
                                                   int index, AddStep add);
  absl::StatusOr<std::optional<Operand>> CheckConcat(const v1::Step& step, const OperandList& inputs,
                                                     int index, AddStep add);
  // Hands a step on, and returns its result. `into`: the tensor that it writes a part of; -1: a new one.
  absl::StatusOr<Operand> Emit(ConvertedStep converted, const std::string& variant, int part_of, AddStep add,
                               int into = -1);
  // A result that no other output has. `taken`: by tensor.
  absl::StatusOr<Operand> OutputOf(Value& value, std::vector<bool>& taken, AddStep add);

  const v1::Program& program_;
  const bool foreign_steps_;
  std::vector<Value> values_;  // the inputs, the results of the steps, then the further results of maps
  absl::flat_hash_map<absl::string_view, int> numbers_;  // of values, by name
  int num_inputs_ = 0;
  std::vector<std::int64_t> counts_;  // elements of the tensors; of inputs, 0
  int kernels_ = 0;
  std::size_t bytes_ = 0;  // of all results
};

// Makes an error about step `index` from one that names only a field of the step itself, as in
// "program.steps[2].axes: step "sums": ...". Returns the status as it is if there are no step names or if it
// is OK.
absl::Status InStep(const absl::Status& status, std::size_t index, const std::vector<std::string>& names);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_PROGRAM_RULES_H_
