// The rules of a program: names, counts, the operation of each step, and unused values. Pure.
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

// Maximum numbers of steps, inputs and outputs of a program. GetInfo reports them.
inline constexpr int kMaxSteps = 256;
inline constexpr std::size_t kMaxInputs = 128;
inline constexpr int kMaxOutputs = 256;
// Maximum number of kernels of a program. A step that joins arrays has one kernel for each array, and a view
// may need a kernel that copies it.
inline constexpr int kMaxKernels = 1024;

// The further results of a step: their names, and the paths of the fields that contain the names.
struct FurtherName {
  std::string field;
  const std::string* name;
};
std::vector<FurtherName> FurtherNames(const v1::Step& step);

// Returns INVALID_ARGUMENT if a program has too many inputs.
absl::Status CheckInputCount(std::size_t count);

// Checks one program, part by part: first each input, then the steps, the outputs, and unused values. Reports
// the first violation. Tensors are numbered as in Program::tensors: first the inputs, then the results of
// steps. Views are not tensors. If a reader needs a tensor, a step that copies the view is added.
//
// In a client, operands may be unknown: a resident tensor of which only the id is known, or the result of a
// step of a newer API. If a step is of a newer API, or reads an unknown operand, it is checked only where the
// operands do not matter. Its result is unknown.
class ProgramRules {
 public:
  // Keeps a reference to the program. If `foreign_steps` is set, steps with fields of a newer API are not
  // errors. Unknown enumeration values always are errors.
  explicit ProgramRules(const v1::Program& program, bool foreign_steps = false)
      : program_(program), foreign_steps_(foreign_steps) {}

  // Adds the next input. Keeps a reference to `name`. `read` returns the input, or nothing if it is unknown;
  // `field` is its name in errors.
  using ReadInput = absl::FunctionRef<absl::StatusOr<std::optional<Operand>>(const std::string& field)>;
  absl::Status AddInput(const std::string& name, ReadInput read);

  // Checks all steps. Calls `add` for each kernel to run, in order, if its operands are known. Its output is
  // a new tensor, or a tensor of which earlier kernels wrote other parts.
  using AddStep = absl::FunctionRef<void(ConvertedStep step, const std::string& variant)>;
  absl::Status CheckSteps(ScalarReader scalars, AddStep add);

  // Checks the outputs, which may also add steps. Calls `add` for each output, in order, with its result: a
  // dense tensor that no other output uses, and the shape to return it with. An error from `add` ends the
  // checks.
  using AddOutput = absl::FunctionRef<absl::Status(const std::string& field, const std::string& name,
                                                   const std::optional<Operand>& result)>;
  absl::Status CheckOutputs(AddStep add_step, AddOutput add);

  // Checks that each step, and so each input, contributes to some output. Anything else is a mistake, or
  // wasted work.
  absl::Status CheckAllUsed() const;

  // Returns the names of the steps, in order.
  std::vector<std::string> StepNames() const;

 private:
  // An input or a result of a step: a tensor or a view of one.
  struct Value {
    const std::string* name;
    int step = -1;         // -1 for an input
    int further = 0;       // index of the first further result of the step; set only in its main result
    bool is_made = false;  // the input has been read, or the step has been checked
    std::optional<Operand> operand;  // set if `is_made` and known
    std::optional<Operand> copy;     // a dense copy of a view, if a reader needed one
    std::optional<Operand> turned;   // a view of a dense tensor that a map reads along its rows
    std::vector<int> reads;          // indices of the values that the step reads
  };
  // The views that a reader can read in place.
  enum class Takes { kViews, kMatrices, kRows };

  absl::Status NameSteps();
  absl::Status NameFurther(int step);
  // Returns the path of the name of value `number`, which must be a result.
  std::string NameField(int number) const;
  absl::Status Define(const std::string& field, Value value);
  absl::StatusOr<int> Find(const std::string& field, const std::string& name, int reader) const;
  absl::Status CheckStep(int index, ScalarReader scalars, AddStep add);
  // Finds what the step reads; `known` gets the operands, to which the list points.
  absl::StatusOr<OperandList> InputsOf(int index, std::vector<Operand>& known, AddStep add);
  // Returns nothing if the result is not known yet.
  absl::StatusOr<std::optional<Operand>> ResultOf(int index, const OperandList& inputs, ScalarReader scalars,
                                                  AddStep add);
  // Returns the value in a form that the reader can read.
  absl::StatusOr<std::optional<Operand>> OperandFor(Value& value, Takes takes, bool elementwise, int reader,
                                                    AddStep add);
  absl::StatusOr<Operand> CopyFor(Value& value, int reader, AddStep add);
  // Returns the result of a step that is a view; nothing if its operand is unknown.
  absl::StatusOr<std::optional<Operand>> CheckView(const v1::Step& step, const OperandList& inputs, Value& of,
                                                   int index, AddStep add);
  absl::StatusOr<std::optional<Operand>> CheckConcat(const v1::Step& step, const OperandList& inputs,
                                                     int index, AddStep add);
  // Passes a step to `add`, and returns its result. `into`: the tensor of which it writes a part; -1: a new
  // one.
  absl::StatusOr<Operand> Emit(ConvertedStep converted, const std::string& variant, int part_of, AddStep add,
                               int into = -1);
  // Returns a result that no other output uses. `taken` is indexed by tensor.
  absl::StatusOr<Operand> OutputOf(Value& value, std::vector<bool>& taken, AddStep add);

  const v1::Program& program_;
  const bool foreign_steps_;
  std::vector<Value> values_;  // the inputs, the results of the steps, then the further results of maps
  absl::flat_hash_map<absl::string_view, int> numbers_;  // index of each value, by name
  int num_inputs_ = 0;
  std::vector<std::int64_t> counts_;  // number of elements of each tensor; 0 for inputs
  int kernels_ = 0;
  std::size_t bytes_ = 0;  // size of all results
};

// Converts an error that names only a field of the step itself to an error about step `index`, such as
// "program.steps[2].axes: step "sums": ...". Returns the status unchanged if there are no step names or if it
// is OK.
absl::Status InStep(const absl::Status& status, std::size_t index, const std::vector<std::string>& names);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_PROGRAM_RULES_H_
