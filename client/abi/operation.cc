#include "client/abi/operation.h"

#include <cstddef>
#include <string>
#include <vector>

namespace warpline::abi {
namespace {

// The operands of a step that reads inputs only; empty if one is missing.
std::vector<client::Operand> OperandsOf(const v1::Step& step, const client::RunArgs& run) {
  std::vector<client::Operand> operands;
  for (const std::string& name : step.inputs()) {
    for (const auto& [input, operand] : run.inputs) {
      if (input == name) {
        operands.push_back(operand);
        break;
      }
    }
  }
  if (operands.size() != static_cast<std::size_t>(step.inputs_size())) operands.clear();
  return operands;
}

client::OperationArgs ToGemm(const v1::Step& step, const std::vector<client::Operand>& operands,
                             const client::RunArgs& run) {
  const v1::GemmStep& gemm = step.gemm();
  client::GemmArgs args{.a = operands[0],
                        .b = operands[1],
                        .trans_a = gemm.trans_a(),
                        .trans_b = gemm.trans_b(),
                        .precision = gemm.precision(),
                        .variant = step.variant(),
                        .activation = gemm.activation(),
                        .out_data_type = client::FromProto(gemm.out_data_type()),
                        .reproducible = run.reproducible};
  if (gemm.has_alpha()) args.alpha = gemm.alpha();
  if (gemm.has_beta()) args.beta = gemm.beta();
  std::size_t next = 2;
  if (operands.size() > next + (gemm.has_bias() ? 1 : 0)) args.c = operands[next++];
  if (gemm.has_bias() && operands.size() > next) args.bias = operands[next];
  return args;
}

}  // namespace

std::optional<client::OperationArgs> ToOperation(const v1::Program& program, const client::RunArgs& run) {
  if (program.steps_size() != 1 || program.outputs_size() != 1) return std::nullopt;
  const v1::Step& step = program.steps(0);
  if (program.outputs(0) != step.name()) return std::nullopt;
  const std::vector<client::Operand> operands = OperandsOf(step, run);
  if (step.has_transpose() && operands.size() == 1) {
    return client::TransposeArgs{.x = operands[0],
                                 .perm = {step.transpose().perm().begin(), step.transpose().perm().end()},
                                 .variant = step.variant(),
                                 .reproducible = run.reproducible};
  }
  if (step.has_gemm() && operands.size() >= 2) return ToGemm(step, operands, run);
  if (step.has_reduce() && operands.size() == 1) {
    const v1::ReduceStep& reduce = step.reduce();
    return client::ReduceArgs{.x = operands[0],
                              .op = reduce.op(),
                              .axes = {reduce.axes().begin(), reduce.axes().end()},
                              .keepdims = reduce.keepdims(),
                              .variant = step.variant(),
                              .out_data_type = client::FromProto(reduce.out_data_type()),
                              .ddof = reduce.ddof(),
                              .reproducible = run.reproducible};
  }
  return std::nullopt;
}

}  // namespace warpline::abi
