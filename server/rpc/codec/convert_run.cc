// From a RunRequest to a Program: names become numbers.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"
#include "server/rpc/codec/convert.h"
#include "server/rpc/codec/convert_options.h"
#include "server/rpc/codec/program_builder.h"

namespace warpline {
namespace {

constexpr int kMaxSteps = 64;
constexpr int kMaxInputs = 64;
constexpr std::size_t kMaxNameLength = 64;

std::string Quoted(const std::string& name) { return absl::StrCat("\"", name, "\""); }

absl::Status CheckName(const std::string& field, const std::string& name) {
  const bool known_characters = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-');
  });
  if (!name.empty() && name.size() <= kMaxNameLength && known_characters) return absl::OkStatus();
  // A name that is too long or not ASCII is not repeated in the error.
  return FieldError(field, absl::StrCat(name.empty()       ? "missing"
                                        : known_characters ? absl::StrCat("of ", name.size(), " characters")
                                                           : std::string("with other characters"),
                                        "; a name has 1 to ", kMaxNameLength,
                                        " characters out of letters, digits, '_', '.' and '-'"));
}

// The meaning of a name in the program: an input or a step. A step has an operand once it has been converted.
struct Value {
  std::optional<Operand> operand;
  int step = -1;  // -1 for an input
};

// Converts one request.
class RunConverter {
 public:
  RunConverter(const v1::RunRequest& request, const TokenValues& values, const Limits& limits)
      : request_(request),
        steps_(request.program().steps()),
        tokens_(values),
        limits_(limits),
        reader_(values, limits) {}

  absl::StatusOr<Conversion> Convert() {
    RETURN_IF_ERROR(builder_.TakeOptions(request_.options(), tokens_));
    RETURN_IF_ERROR(ReadInputs());
    RETURN_IF_ERROR(NameSteps());
    std::vector<std::string> names;
    for (int i = 0; i < steps_.size(); ++i) {
      names.push_back(steps_[i].name());
      RETURN_IF_ERROR(InStep(AddStep(i), static_cast<std::size_t>(i), names));
    }
    RETURN_IF_ERROR(AddOutputs());
    RETURN_IF_ERROR(builder_.CheckSinksUsed());
    RETURN_IF_ERROR(CheckAllUsed());
    Conversion conversion = std::move(builder_).Build();
    conversion.step_names = std::move(names);
    return conversion;
  }

 private:
  absl::Status ReadInputs() {
    if (request_.inputs_size() > kMaxInputs) {
      return FieldError("inputs",
                        absl::StrCat(request_.inputs_size(), " are above the limit of ", kMaxInputs));
    }
    for (int i = 0; i < request_.inputs_size(); ++i) {
      const v1::NamedTensor& input = request_.inputs(i);
      const std::string field = absl::StrCat("inputs[", i, "]");
      RETURN_IF_ERROR(CheckName(field + ".name", input.name()));
      ASSIGN_OR_RETURN(const CheckedTensor tensor,
                       reader_.Read(field + ".tensor", input.has_tensor() ? &input.tensor() : nullptr));
      RETURN_IF_ERROR(Define(field + ".name", input.name(), {builder_.AddInput(input.name(), tensor)}));
    }
    return absl::OkStatus();
  }

  // Registers the names of all steps before any is converted, so that an unknown name can be told from that
  // of a later step.
  absl::Status NameSteps() {
    if (steps_.empty()) return FieldError("program.steps", "missing; a program has at least 1");
    if (steps_.size() > kMaxSteps) {
      return FieldError("program.steps", absl::StrCat(steps_.size(), " are above the limit of ", kMaxSteps));
    }
    for (int i = 0; i < steps_.size(); ++i) {
      const std::string field = absl::StrCat("program.steps[", i, "].name");
      RETURN_IF_ERROR(CheckName(field, steps_[i].name()));
      RETURN_IF_ERROR(Define(field, steps_[i].name(), {std::nullopt, i}));
    }
    return absl::OkStatus();
  }

  absl::Status Define(const std::string& field, const std::string& name, Value value) {
    const auto [known, is_new] = values_.try_emplace(name, std::move(value));
    if (is_new) return absl::OkStatus();
    return FieldError(field,
                      absl::StrCat(Quoted(name), " is already the name of ",
                                   known->second.step < 0 ? std::string("an input")
                                                          : absl::StrCat("step ", known->second.step)));
  }

  // Returns the operand that step `reader` reads by this name.
  absl::StatusOr<Operand> Find(const std::string& field, const std::string& name, int reader) const {
    RETURN_IF_ERROR(CheckName(field, name));
    const auto found = values_.find(name);
    if (found == values_.end()) {
      return FieldError(field, absl::StrCat(Quoted(name), " names no input and no step"));
    }
    const Value& value = found->second;
    if (value.step == reader) return FieldError(field, "the step reads its own result");
    if (!value.operand.has_value()) {
      return FieldError(field, absl::StrCat(Quoted(name), " is step ", value.step,
                                            ", which comes later: a step reads earlier results only"));
    }
    Operand operand = *value.operand;
    operand.field = field;
    return operand;
  }

  // Errors name the fields of the step alone; InStep adds the rest.
  absl::Status AddStep(int index) {
    const v1::Step& step = steps_[index];
    std::vector<Operand> inputs;
    for (int i = 0; i < step.inputs_size(); ++i) {
      ASSIGN_OR_RETURN(Operand operand, Find(absl::StrCat("inputs[", i, "]"), step.inputs(i), index));
      inputs.push_back(std::move(operand));
    }
    ASSIGN_OR_RETURN(ConvertedStep converted, ConvertStep(step, inputs));
    RETURN_IF_ERROR(CheckVariantName(step.variant()));
    values_[step.name()].operand = builder_.AddStep(std::move(converted), step.variant());
    return absl::OkStatus();
  }

  static absl::Status CheckCount(const std::vector<Operand>& inputs, std::size_t count) {
    if (inputs.size() == count) return absl::OkStatus();
    return FieldError("inputs", absl::StrCat("has ", inputs.size(), " names; the operation reads ", count));
  }

  absl::StatusOr<ConvertedStep> ConvertStep(const v1::Step& step, const std::vector<Operand>& inputs) const {
    const auto unary = [&](auto convert) -> absl::StatusOr<ConvertedStep> {
      RETURN_IF_ERROR(CheckCount(inputs, 1));
      return convert(inputs[0]);
    };
    switch (step.operation_case()) {
      case v1::Step::kTranspose:
        return unary(
            [&](const Operand& x) { return ConvertTranspose(x, TransposeOptionsOf(step.transpose())); });
      case v1::Step::kReduce:
        return unary([&](const Operand& x) { return ConvertReduce(x, ReduceOptionsOf(step.reduce())); });
      case v1::Step::kCast:
        return unary([&](const Operand& x) { return ConvertCast(x, step.cast().data_type()); });
      case v1::Step::kScale:
        return unary([&](const Operand& x) -> absl::StatusOr<ConvertedStep> {
          ASSIGN_OR_RETURN(const Scalar factor, FactorOf(step.scale(), tokens_.scalars));
          return ConvertScale(x, factor);
        });
      case v1::Step::kGemm:
        return ConvertGemmStep(step.gemm(), inputs);
      case v1::Step::kAdd:
        RETURN_IF_ERROR(CheckCount(inputs, 2));
        return ConvertAdd(inputs[0], inputs[1]);
      case v1::Step::OPERATION_NOT_SET:
        break;
    }
    return FieldError("operation", "missing; it must be one of transpose, gemm, reduce, cast, scale, add");
  }

  absl::StatusOr<ConvertedStep> ConvertGemmStep(const v1::GemmStep& gemm,
                                                const std::vector<Operand>& inputs) const {
    ASSIGN_OR_RETURN(const GemmOptions options, GemmOptionsOf(gemm, tokens_.scalars));
    const bool reads_c = !inputs.empty() && ReadsC(inputs[0].dtype, options.beta.value);
    const std::size_t bias = reads_c ? 3 : 2;  // its place, if there is one
    RETURN_IF_ERROR(CheckCount(inputs, bias + (gemm.has_bias() ? 1 : 0)));
    return ConvertGemm(inputs[0], inputs[1], reads_c ? &inputs[2] : nullptr,
                       gemm.has_bias() ? &inputs[bias] : nullptr, options);
  }

  absl::Status AddOutputs() {
    const auto& outputs = request_.program().outputs();
    if (outputs.empty()) return FieldError("program.outputs", "missing; a program returns at least 1");
    std::vector<int> returned;
    for (int i = 0; i < outputs.size(); ++i) {
      const std::string field = absl::StrCat("program.outputs[", i, "]");
      RETURN_IF_ERROR(CheckName(field, outputs[i]));
      const auto found = values_.find(outputs[i]);
      if (found == values_.end() || found->second.step < 0) {
        return FieldError(field, absl::StrCat(Quoted(outputs[i]), " names no step"));
      }
      const int tensor = found->second.operand->tensor;
      if (std::find(returned.begin(), returned.end(), tensor) != returned.end()) {
        return FieldError(field, absl::StrCat(Quoted(outputs[i]), " is named twice"));
      }
      returned.push_back(tensor);
      RETURN_IF_ERROR(builder_.AddOutput(field, outputs[i], tensor, limits_));
    }
    return absl::OkStatus();
  }

  // Each step, and with it each input, must go into some output: what does not is a mistake, or wasted work.
  absl::Status CheckAllUsed() const {
    const Program& program = builder_.program();
    std::vector<bool> used(program.tensors.size(), false);
    for (int output : program.outputs) used[output] = true;
    for (std::size_t i = program.steps.size(); i-- > 0;) {
      const Step& step = program.steps[i];
      if (!used[step.output]) {
        return FieldError(absl::StrCat("program.steps[", i, "].name"),
                          absl::StrCat("step ", Quoted(steps_[static_cast<int>(i)].name()),
                                       ": its result neither is an output nor goes into one"));
      }
      for (int input : step.inputs) used[input] = true;
    }
    for (int i = 0; i < program.num_inputs; ++i) {
      if (used[i]) continue;
      return FieldError(absl::StrCat("inputs[", i, "].name"),
                        absl::StrCat(Quoted(request_.inputs(i).name()), " is read by no step"));
    }
    return absl::OkStatus();
  }

  const v1::RunRequest& request_;
  const google::protobuf::RepeatedPtrField<v1::Step>& steps_;
  const TokenValues& tokens_;
  const Limits& limits_;
  TensorReader reader_;
  ProgramBuilder builder_;
  absl::flat_hash_map<std::string, Value> values_;
};

}  // namespace

absl::StatusOr<Conversion> FromProto(const v1::RunRequest& request, const TokenValues& values,
                                     const Limits& limits) {
  return RunConverter(request, values, limits).Convert();
}

absl::Status InStep(const absl::Status& status, std::size_t index, const std::vector<std::string>& names) {
  const std::optional<std::string> field = FieldOf(status);
  if (index >= names.size() || !field.has_value()) return status;
  const std::string text(status.message());
  const std::string rest = text.substr(std::min(text.size(), field->size() + 2));  // after "field: "
  return FieldError(absl::StrCat("program.steps[", index, "].", *field),
                    absl::StrCat("step ", Quoted(names[index]), ": ", rest));
}

}  // namespace warpline
