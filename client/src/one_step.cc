#include "client/src/one_step.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client/src/grpc_error.h"
#include "proto/rules/one_step.h"

namespace warpline::client {
namespace {

RunArgs Program(v1::Step step, std::vector<std::pair<std::string, Operand>> inputs, bool reproducible) {
  std::vector<std::string> names;
  for (const auto& [name, operand] : inputs) names.push_back(name);
  return {.program = OneStepProgram(std::move(step), names),
          .inputs = std::move(inputs),
          .reproducible = reproducible,
          .one_step = true};
}

bool ReadsInOrder(const RunArgs& args) {
  if (args.program.steps_size() != 1) return false;
  const auto& read = args.program.steps(0).inputs();
  return !read.empty() &&
         std::equal(read.begin(), read.end(), args.inputs.begin(), args.inputs.end(),
                    [](const std::string& name, const auto& input) { return name == input.first; });
}

}  // namespace

RunArgs OneStep(const TransposeArgs& args) {
  v1::Step step;
  step.set_variant(args.variant);
  step.mutable_transpose()->mutable_perm()->Add(args.perm.begin(), args.perm.end());
  return Program(std::move(step), {{"x", args.x}}, args.reproducible);
}

RunArgs OneStep(const GemmArgs& args) {
  v1::Step step;
  step.set_variant(args.variant);
  v1::GemmStep& gemm = *step.mutable_gemm();
  gemm.set_trans_a(args.trans_a);
  gemm.set_trans_b(args.trans_b);
  if (args.alpha) gemm.set_alpha(*args.alpha);
  if (args.beta) gemm.set_beta(*args.beta);
  gemm.set_precision(args.precision);
  gemm.set_has_bias(args.bias.has_value());
  gemm.set_activation(args.activation);
  if (args.out_data_type) gemm.set_out_data_type(ToProto(*args.out_data_type));
  std::vector<std::pair<std::string, Operand>> inputs = {{"a", args.a}, {"b", args.b}};
  if (args.c) inputs.emplace_back("c", *args.c);
  if (args.bias) inputs.emplace_back("bias", *args.bias);
  return Program(std::move(step), std::move(inputs), args.reproducible);
}

RunArgs OneStep(const ReduceArgs& args) {
  v1::Step step;
  step.set_variant(args.variant);
  v1::ReduceStep& reduce = *step.mutable_reduce();
  reduce.set_op(args.op);
  reduce.mutable_axes()->Add(args.axes.begin(), args.axes.end());
  reduce.set_keepdims(args.keepdims);
  if (args.out_data_type) reduce.set_out_data_type(ToProto(*args.out_data_type));
  reduce.set_ddof(args.ddof);
  return Program(std::move(step), {{"x", args.x}}, args.reproducible);
}

absl::Status InOneStep(const RunArgs& args, const absl::Status& status) {
  if (status.ok() || !args.one_step || !ReadsInOrder(args)) return status;
  const v1::Step& step = args.program.steps(0);
  return WithViolations(InOperation(status, step),
                        [&](const std::string& text) { return InOperation(text, step); });
}

}  // namespace warpline::client
