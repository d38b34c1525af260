#include "proto/rules/program_rules.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/field_error.h"
#include "kernels/status_macros.h"
#include "proto/rules/known_fields.h"
#include "proto/rules/reduce_steps.h"
#include "proto/rules/step_kinds.h"
#include "proto/rules/views.h"

namespace warpline {
namespace {

std::string Quoted(const std::string& name) { return absl::StrCat("\"", name, "\""); }

absl::Status CheckName(const std::string& field, const std::string& name) {
  const bool known_characters = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-');
  });
  if (!name.empty() && name.size() <= kMaxNameLength && known_characters) return absl::OkStatus();
  // A name that is too long or not ASCII is not shown in the error.
  return FieldError(field, absl::StrCat(name.empty()       ? "missing"
                                        : known_characters ? absl::StrCat("of ", name.size(), " characters")
                                                           : std::string("with other characters"),
                                        "; a name has 1 to ", kMaxNameLength,
                                        " characters out of letters, digits, '_', '.' and '-'"));
}

}  // namespace

std::vector<FurtherName> FurtherNames(const v1::Step& step) {
  std::vector<FurtherName> names;
  for (int i = 0; i < step.map().outputs_size(); ++i) {  // empty for other operations
    names.push_back({absl::StrCat("outputs[", i, "].name"), &step.map().outputs(i).name()});
  }
  for (const std::string* const indices : {&step.sort().indices(), &step.topk().indices()}) {
    if (!indices->empty()) names.push_back({"indices", indices});
  }
  return names;
}

absl::Status CheckInputCount(std::size_t count) {
  if (count <= kMaxInputs) return absl::OkStatus();
  return FieldError("inputs", absl::StrCat(count, " are above the limit of ", kMaxInputs));
}

absl::Status ProgramRules::AddInput(const std::string& name, ReadInput read) {
  const std::string field = absl::StrCat("inputs[", num_inputs_++, "]");
  RETURN_IF_ERROR(CheckName(field + ".name", name));
  ASSIGN_OR_RETURN(std::optional<Operand> operand, read(field + ".tensor"));
  if (operand.has_value()) operand->tensor = static_cast<int>(counts_.size());
  counts_.push_back(0);
  return Define(field + ".name",
                {.name = &name, .is_made = true, .operand = std::move(operand), .reads = {}});
}

// Registers the names of all steps before any step is checked. So an unknown name can be distinguished from
// the name of a later step.
absl::Status ProgramRules::NameSteps() {
  const auto& steps = program_.steps();
  if (steps.empty()) return FieldError("program.steps", "missing; a program has at least 1");
  if (steps.size() > kMaxSteps) {
    return FieldError("program.steps", absl::StrCat(steps.size(), " are above the limit of ", kMaxSteps));
  }
  for (int i = 0; i < steps.size(); ++i) {
    const std::string field = absl::StrCat("program.steps[", i, "].name");
    RETURN_IF_ERROR(CheckName(field, steps[i].name()));
    RETURN_IF_ERROR(Define(field, {.name = &steps[i].name(), .step = i, .operand = {}, .reads = {}}));
  }
  for (int i = 0; i < steps.size(); ++i) {
    const absl::Status status = NameFurther(i);
    if (!status.ok()) return InStep(status, static_cast<std::size_t>(i), StepNames());
  }
  return absl::OkStatus();
}

absl::Status ProgramRules::NameFurther(int step) {
  const v1::MapStep& map = program_.steps(step).map();  // empty for other operations
  if (map.outputs_size() >= kMaxMapOutputs) {
    return FieldError("outputs", absl::StrCat("has ", map.outputs_size(), "; a map has at most ",
                                              kMaxMapOutputs - 1, " results beside that of its last node"));
  }
  values_[static_cast<std::size_t>(num_inputs_ + step)].further = static_cast<int>(values_.size());
  for (const FurtherName& further : FurtherNames(program_.steps(step))) {
    RETURN_IF_ERROR(CheckName(further.field, *further.name));
    RETURN_IF_ERROR(Define(further.field, {.name = further.name, .step = step, .operand = {}, .reads = {}}));
  }
  return absl::OkStatus();
}

absl::Status ProgramRules::Define(const std::string& field, Value value) {
  const auto [known, is_new] = numbers_.try_emplace(*value.name, static_cast<int>(values_.size()));
  if (is_new) {
    values_.push_back(std::move(value));
    return absl::OkStatus();
  }
  const int step = values_[static_cast<std::size_t>(known->second)].step;
  return FieldError(field, absl::StrCat(Quoted(*value.name), " is already the name of ",
                                        step < 0 ? std::string("an input") : absl::StrCat("step ", step)));
}

// Returns the index of the value with this name that step `reader` reads.
absl::StatusOr<int> ProgramRules::Find(const std::string& field, const std::string& name, int reader) const {
  RETURN_IF_ERROR(CheckName(field, name));
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) {
    return FieldError(field, absl::StrCat(Quoted(name), " names no input and no step"));
  }
  const Value& value = values_[static_cast<std::size_t>(found->second)];
  if (value.step == reader) return FieldError(field, "the step reads its own result");
  if (value.is_made) return found->second;
  return FieldError(field, absl::StrCat(Quoted(name), " is step ", value.step,
                                        ", which comes later: a step reads earlier results only"));
}

absl::Status ProgramRules::CheckSteps(ScalarReader scalars, AddStep add) {
  RETURN_IF_ERROR(NameSteps());
  for (int i = 0; i < program_.steps_size(); ++i) {
    const absl::Status status = CheckStep(i, scalars, add);
    if (!status.ok()) return InStep(status, static_cast<std::size_t>(i), StepNames());
  }
  return absl::OkStatus();
}

absl::StatusOr<Operand> ProgramRules::Emit(ConvertedStep converted, const std::string& variant, int part_of,
                                           AddStep add, int into) {
  if (++kernels_ > kMaxKernels) {
    return FieldError("operation", absl::StrCat("with this step the program comes down to more than ",
                                                kMaxKernels, " kernels, which is the limit"));
  }
  const TensorSpec& spec = converted.output;
  // This is far below 2^63, so sums of offsets do not overflow.
  constexpr std::size_t kMaxBytes = std::size_t{1} << 60;
  if (into < 0) bytes_ += spec.bytes;
  for (const TensorSpec& further : converted.further) {
    if (bytes_ <= kMaxBytes) bytes_ += further.bytes;
  }
  if (bytes_ > kMaxBytes) {
    return FieldError("operation", "with this step the results of the program take more than 2^60 bytes");
  }
  if (into < 0) {
    into = static_cast<int>(counts_.size());
    counts_.push_back(spec.shape.Count());
  }
  for (const TensorSpec& further : converted.further) {
    converted.step.further.push_back(static_cast<int>(counts_.size()));
    counts_.push_back(further.shape.Count());
  }
  converted.step.output = into;
  converted.step.part_of = part_of;
  Operand result = DenseOperand("", into, spec);
  add(std::move(converted), variant);
  return result;
}

absl::StatusOr<OperandList> ProgramRules::InputsOf(int index, std::vector<Operand>& known, AddStep add) {
  const v1::Step& step = program_.steps(index);
  known.reserve(static_cast<std::size_t>(step.inputs_size()));
  OperandList inputs;
  for (int i = 0; i < step.inputs_size(); ++i) {
    std::string field = absl::StrCat("inputs[", i, "]");
    ASSIGN_OR_RETURN(const int read, Find(field, step.inputs(i), index));
    values_[static_cast<std::size_t>(num_inputs_ + index)].reads.push_back(read);
    inputs.push_back(nullptr);
    const std::optional<Operand>& given = values_[static_cast<std::size_t>(read)].operand;
    if (given.has_value() && given->count_tensor >= 0) {
      return FieldError(field, absl::StrCat(Quoted(step.inputs(i)),
                                            " has a size that is known only after the "
                                            "program has run, so no step can read it: it can be an output"));
    }
    const bool takes_rows = step.has_reduce() || (step.has_gemm() && i > 1);
    const Takes takes = takes_rows ? Takes::kRows : step.has_gemm() ? Takes::kMatrices : Takes::kViews;
    ASSIGN_OR_RETURN(
        const std::optional<Operand> operand,
        OperandFor(values_[static_cast<std::size_t>(read)], takes, IsElementwise(step), index, add));
    if (!operand.has_value()) continue;
    known.push_back(*operand);
    known.back().field = std::move(field);
    inputs.back() = &known.back();
  }
  return inputs;
}

absl::StatusOr<std::optional<Operand>> ProgramRules::ResultOf(int index, const OperandList& inputs,
                                                              ScalarReader scalars, AddStep add) {
  const v1::Step& step = program_.steps(index);
  Value& value = values_[static_cast<std::size_t>(num_inputs_ + index)];
  if (IsView(step)) {
    Value& of = value.reads.empty() ? value : values_[static_cast<std::size_t>(value.reads[0])];
    return CheckView(step, inputs, of, index, add);
  }
  if (step.has_concat()) return CheckConcat(step, inputs, index, add);
  const auto emit = [&](ConvertedStep converted, const std::string& variant, int into) {
    return Emit(std::move(converted), variant, index, add, into);
  };
  if (step.has_reduce()) {
    RETURN_IF_ERROR(CheckCount(inputs.size(), 1));
    if (inputs[0] == nullptr) return std::nullopt;
    return ReduceSteps(*inputs[0], ReduceOptionsOf(step.reduce()), step.variant(), emit);
  }
  if (EmitsSteps(step)) {
    RETURN_IF_ERROR(CheckCount(inputs.size(), OperandsOf(step)));
    if (!AllKnown(inputs)) return std::nullopt;
    ASSIGN_OR_RETURN(const StepResults results, CheckEmitting(step, inputs, emit));
    if (results.further.has_value()) {
      values_[static_cast<std::size_t>(value.further)].operand = results.further;
    }
    return results.own;
  }
  ASSIGN_OR_RETURN(std::optional<ConvertedStep> converted, ConvertStep(step, inputs, scalars));
  if (!converted.has_value()) return std::nullopt;
  const std::vector<TensorSpec> further = converted->further;
  ASSIGN_OR_RETURN(const Operand result, Emit(*std::move(converted), step.variant(), index, add));
  for (std::size_t i = 0; i < further.size(); ++i) {
    const auto next = static_cast<int>(i) + 1;
    values_[static_cast<std::size_t>(value.further) + i].operand =
        DenseOperand("", result.tensor + next, further[i]);
  }
  return result;
}

// Errors name only the fields of the step; InStep adds the rest.
absl::Status ProgramRules::CheckStep(int index, ScalarReader scalars, AddStep add) {
  const v1::Step& step = program_.steps(index);
  Value& value = values_[static_cast<std::size_t>(num_inputs_ + index)];
  // The step may be from a newer API, which another server may support.
  const absl::Status known_fields = CheckAllKnown(step);
  const bool foreign = !known_fields.ok();
  if (foreign && !foreign_steps_) return known_fields;
  std::vector<Operand> known;
  ASSIGN_OR_RETURN(const OperandList inputs, InputsOf(index, known, add));
  RETURN_IF_ERROR(CheckVariantName(step.variant()));
  std::optional<Operand> result;  // that of a foreign step is unknown
  if (!foreign) {
    ASSIGN_OR_RETURN(result, ResultOf(index, inputs, scalars, add));
  }
  for (std::size_t i = 0; i < FurtherNames(step).size(); ++i) {
    values_[static_cast<std::size_t>(value.further) + i].is_made = true;
  }
  value.is_made = true;
  if (result.has_value()) {
    result->field.clear();
    value.operand = *std::move(result);
  }
  return absl::OkStatus();
}

absl::StatusOr<Operand> ProgramRules::OutputOf(Value& value, std::vector<bool>& taken, AddStep add) {
  const Operand& x = *value.operand;
  const auto take = [&](const Operand& operand) {
    const auto tensor = static_cast<std::size_t>(operand.tensor);
    if (tensor >= taken.size()) taken.resize(tensor + 1);
    if (taken[tensor]) return false;
    taken[tensor] = true;
    return true;
  };
  // A complete result in its own order, perhaps with another shape, needs no copy.
  const bool whole = x.tensor >= num_inputs_ && x.offset == 0 && IsDense(x) &&
                     counts_[static_cast<std::size_t>(x.tensor)] == x.shape.Count();
  if (whole && take(x)) return x;
  if (value.copy.has_value() && take(*value.copy)) return *value.copy;
  ASSIGN_OR_RETURN(Operand copy, Emit(CopyOf(x), "", value.step, add));
  take(copy);
  return copy;
}

absl::Status ProgramRules::CheckOutputs(AddStep add_step, AddOutput add) {
  const auto& outputs = program_.outputs();
  if (outputs.empty()) return FieldError("program.outputs", "missing; a program returns at least 1");
  if (outputs.size() > kMaxOutputs) {
    return FieldError("program.outputs",
                      absl::StrCat(outputs.size(), " are above the limit of ", kMaxOutputs));
  }
  std::vector<int> returned;
  std::vector<bool> taken;
  for (int i = 0; i < outputs.size(); ++i) {
    const std::string field = absl::StrCat("program.outputs[", i, "]");
    RETURN_IF_ERROR(CheckName(field, outputs[i]));
    const auto found = numbers_.find(outputs[i]);
    if (found == numbers_.end() || found->second < num_inputs_) {
      return FieldError(field, absl::StrCat(Quoted(outputs[i]), " names no step"));
    }
    if (std::find(returned.begin(), returned.end(), found->second) != returned.end()) {
      return FieldError(field, absl::StrCat(Quoted(outputs[i]), " is named twice"));
    }
    returned.push_back(found->second);
    Value& value = values_[static_cast<std::size_t>(found->second)];
    std::optional<Operand> result;
    if (value.operand.has_value()) {
      ASSIGN_OR_RETURN(result, OutputOf(value, taken, add_step));
    }
    RETURN_IF_ERROR(add(field, outputs[i], result));
  }
  return absl::OkStatus();
}

absl::Status ProgramRules::CheckAllUsed() const {
  std::vector<bool> used(values_.size(), false);
  for (const std::string& output : program_.outputs()) {
    used[static_cast<std::size_t>(numbers_.at(output))] = true;
  }
  for (int i = program_.steps_size() - 1; i >= 0; --i) {
    const Value& own = values_[static_cast<std::size_t>(num_inputs_ + i)];
    std::vector<int> results = {num_inputs_ + i};
    const std::size_t further = FurtherNames(program_.steps(i)).size();
    for (std::size_t k = 0; k < further; ++k) results.push_back(own.further + static_cast<int>(k));
    for (const int result : results) {
      if (used[static_cast<std::size_t>(result)]) continue;
      // A step that returns indices also computes the elements, even if nothing reads them.
      const bool sorts = program_.steps(i).has_sort() || program_.steps(i).has_topk();
      if (sorts && result != results.back() && used[static_cast<std::size_t>(results.back())]) continue;
      return FieldError(
          NameField(result),
          absl::StrCat("step ", Quoted(*own.name), ": its result neither is an output nor goes into one"));
    }
    for (const int read : own.reads) used[static_cast<std::size_t>(read)] = true;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(num_inputs_); ++i) {
    if (used[i]) continue;
    return FieldError(absl::StrCat("inputs[", i, "].name"),
                      absl::StrCat(Quoted(*values_[i].name), " is read by no step"));
  }
  return absl::OkStatus();
}

std::string ProgramRules::NameField(int number) const {
  const Value& value = values_[static_cast<std::size_t>(number)];
  const std::string step = absl::StrCat("program.steps[", value.step, "].");
  if (number < num_inputs_ + program_.steps_size()) return step + "name";
  const int further = number - values_[static_cast<std::size_t>(num_inputs_ + value.step)].further;
  return step + FurtherNames(program_.steps(value.step))[static_cast<std::size_t>(further)].field;
}

std::vector<std::string> ProgramRules::StepNames() const {
  std::vector<std::string> names;
  for (const v1::Step& step : program_.steps()) names.push_back(step.name());
  return names;
}

absl::Status InStep(const absl::Status& status, std::size_t index, const std::vector<std::string>& names) {
  if (index >= names.size()) return status;
  return Within(absl::StrCat("program.steps[", index, "]"), status,
                absl::StrCat("step ", Quoted(names[index]), ": "));
}

}  // namespace warpline
