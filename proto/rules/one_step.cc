#include "proto/rules/one_step.h"

#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/field_error.h"

namespace warpline {
namespace {

// Adds the fields that requests of all operations have.
template <typename Request>
v1::RunRequest Finish(const Request& request, v1::Step step,
                      const std::vector<std::pair<std::string, const v1::Tensor*>>& inputs) {
  v1::RunRequest run;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : inputs) {
    names.push_back(name);
    v1::NamedTensor& input = *run.add_inputs();
    input.set_name(name);
    if (tensor != nullptr) *input.mutable_tensor() = *tensor;
  }
  step.set_variant(request.variant());
  *run.mutable_program() = OneStepProgram(std::move(step), names);
  if (request.has_options()) *run.mutable_options() = request.options();
  for (v1::Sink& sink : *run.mutable_options()->mutable_sinks()) {
    if (sink.output().empty()) sink.set_output(kOneStepName);
  }
  return run;
}

}  // namespace

v1::Program OneStepProgram(v1::Step step, const std::vector<std::string>& inputs) {
  v1::Program program;
  step.set_name(kOneStepName);
  for (const std::string& input : inputs) step.add_inputs(input);
  *program.add_steps() = std::move(step);
  program.add_outputs(kOneStepName);
  return program;
}

v1::RunRequest AsRun(const v1::TransposeRequest& request) {
  v1::Step step;
  *step.mutable_transpose()->mutable_perm() = request.perm();
  return Finish(request, std::move(step), {{"x", request.has_x() ? &request.x() : nullptr}});
}

v1::RunRequest AsRun(const v1::GemmRequest& request) {
  v1::Step step;
  v1::GemmStep& gemm = *step.mutable_gemm();
  gemm.set_trans_a(request.trans_a());
  gemm.set_trans_b(request.trans_b());
  if (request.has_alpha()) gemm.set_alpha(request.alpha());
  if (request.has_beta()) gemm.set_beta(request.beta());
  gemm.set_precision(request.precision());
  gemm.set_has_bias(request.has_bias());
  gemm.set_activation(request.activation());
  gemm.set_out_data_type(request.out_data_type());
  std::vector<std::pair<std::string, const v1::Tensor*>> inputs = {
      {"a", request.has_a() ? &request.a() : nullptr}, {"b", request.has_b() ? &request.b() : nullptr}};
  if (request.has_c()) inputs.emplace_back("c", &request.c());
  if (request.has_bias()) inputs.emplace_back("bias", &request.bias());
  return Finish(request, std::move(step), inputs);
}

v1::RunRequest AsRun(const v1::ReduceRequest& request) {
  v1::Step step;
  v1::ReduceStep& reduce = *step.mutable_reduce();
  reduce.set_op(request.op());
  *reduce.mutable_axes() = request.axes();
  reduce.set_keepdims(request.keepdims());
  reduce.set_out_data_type(request.out_data_type());
  reduce.set_ddof(request.ddof());
  return Finish(request, std::move(step), {{"x", request.has_x() ? &request.x() : nullptr}});
}

std::string InOperation(std::string text, const v1::Step& step) {
  const std::string first = step.inputs_size() > 0 ? step.inputs(0) : "";
  // Blames this field if a request or a result is too large.
  if (text == "program") return first;
  if (absl::StartsWith(text, "program: ")) text = absl::StrCat(first, text.substr(7));
  std::vector<std::pair<std::string, std::string>> names = {
      {"program.outputs[0]", absl::StrCat(first, ".shape")},
      {"program.steps[0].", ""},
      {absl::StrCat("step \"", step.name(), "\": "), ""}};
  for (int i = 0; i < step.inputs_size(); ++i) {
    const std::string input = absl::StrCat("inputs[", i, "]");
    names.emplace_back(absl::StrCat("program.steps[0].", input), step.inputs(i));
    names.emplace_back(absl::StrCat(input, ".tensor"), step.inputs(i));
    names.emplace_back(input, step.inputs(i));
  }
  return absl::StrReplaceAll(text, names);
}

absl::Status InOperation(const absl::Status& status, const v1::Step& step) {
  if (status.ok()) return status;
  absl::Status about(status.code(), InOperation(std::string(status.message()), step));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { about.SetPayload(url, payload); });
  if (const std::optional<std::string> field = FieldOf(status)) {
    about.SetPayload(absl::string_view(kFieldPayloadUrl.data(), kFieldPayloadUrl.size()),
                     absl::Cord(InOperation(*field, step)));
  }
  return about;
}

}  // namespace warpline
