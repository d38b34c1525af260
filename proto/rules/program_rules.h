// The rules of a program of several steps: names, counts, each step's operation, and what is used. Pure.
#ifndef WARPLINE_PROTO_RULES_PROGRAM_RULES_H_
#define WARPLINE_PROTO_RULES_PROGRAM_RULES_H_

#include <cstddef>
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

// INVALID_ARGUMENT if a program has too many inputs.
absl::Status CheckInputCount(std::size_t count);

// Checks one program, part by part: first each input, then the steps, the outputs, and what is used. The
// first rule that is broken is the one reported. Tensors are numbered as in Program::tensors.
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

  // Checks all steps. `add` is called for each one with known operands, in their order.
  using AddStep = absl::FunctionRef<void(ConvertedStep step, const std::string& variant)>;
  absl::Status CheckSteps(ScalarReader scalars, AddStep add);

  // Checks the outputs. `add` is called for each, in their order, with its result. Its errors end the checks.
  using AddOutput = absl::FunctionRef<absl::Status(const std::string& field, const std::string& name,
                                                   const std::optional<Operand>& result)>;
  absl::Status CheckOutputs(AddOutput add) const;

  // Each step, and with it each input, must go into some output: what does not is a mistake, or wasted work.
  absl::Status CheckAllUsed() const;

  // The names of the steps, in their order.
  std::vector<std::string> StepNames() const;

 private:
  // A tensor: an input or the result of a step.
  struct Value {
    const std::string* name;
    int step = -1;                   // -1 for an input
    bool is_made = false;            // the input has been read, or the step has been checked
    std::optional<Operand> operand;  // of a made one, if it is known
    std::vector<int> reads;          // numbers of the values that the step reads
  };

  absl::Status NameSteps();
  absl::Status Define(const std::string& field, Value value);
  absl::StatusOr<int> Find(const std::string& field, const std::string& name, int reader) const;
  absl::Status CheckStep(int index, ScalarReader scalars, AddStep add);

  const v1::Program& program_;
  const bool foreign_steps_;
  std::vector<Value> values_;
  absl::flat_hash_map<absl::string_view, int> numbers_;  // of values, by name
  int num_inputs_ = 0;
};

// Makes an error about step `index` from one that names only a field of the step itself, as in
// "program.steps[2].axes: step "sums": ...". Returns the status as it is if there are no step names or if it
// is OK.
absl::Status InStep(const absl::Status& status, std::size_t index, const std::vector<std::string>& names);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_PROGRAM_RULES_H_
