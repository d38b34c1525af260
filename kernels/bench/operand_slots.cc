#include "kernels/bench/operand_slots.h"

#include <algorithm>
#include <utility>

#include "kernels/bench/check.h"
#include "kernels/bench/data.h"

namespace warpline::bench {
namespace {

std::vector<std::int64_t> InputCounts(const BenchProblem& problem) {
  if (const auto* gemm = std::get_if<GemmProblem>(&problem)) return {gemm->m * gemm->k, gemm->k * gemm->n};
  if (const auto* reduce = std::get_if<ReduceProblem>(&problem)) return {reduce->shape.Count()};
  return {std::get<TransposeProblem>(problem).shape.Count()};
}

DType InDType(const BenchProblem& problem) {
  return std::visit([](const auto& p) { return p.dtype; }, problem);
}

// As the server aligns the operands of a program.
std::size_t Aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

DType OutDType(const BenchProblem& problem) {
  if (const auto* gemm = std::get_if<GemmProblem>(&problem)) return gemm->OutDType();
  if (const auto* reduce = std::get_if<ReduceProblem>(&problem)) return reduce->OutDType();
  return std::get<TransposeProblem>(problem).dtype;
}

std::int64_t OutCount(const BenchProblem& problem) {
  if (const auto* gemm = std::get_if<GemmProblem>(&problem)) return gemm->m * gemm->n;
  if (const auto* reduce = std::get_if<ReduceProblem>(&problem)) return reduce->OutputShape(false).Count();
  return std::get<TransposeProblem>(problem).shape.Count();
}

std::size_t OutBytes(const BenchProblem& problem) {
  return static_cast<std::size_t>(OutCount(problem)) * SizeOf(OutDType(problem));
}

std::size_t SetBytes(const BenchProblem& problem) {
  std::size_t bytes = Aligned(OutBytes(problem));
  for (std::int64_t count : InputCounts(problem)) {
    bytes += Aligned(static_cast<std::size_t>(count) * SizeOf(InDType(problem)));
  }
  return bytes;
}

OperandSlots::OperandSlots(const BenchProblem& problem, int slots, std::size_t workspace_bytes,
                           cudaStream_t stream) {
  if (std::holds_alternative<GemmProblem>(problem)) {
    const StepScalars scalars;
    scalars_ = Value(gpu::AllocateDevice(sizeof(scalars)));
    Check(cudaMemcpy(scalars_.get(), &scalars, sizeof(scalars), cudaMemcpyHostToDevice), "copying scalars");
  }
  if (workspace_bytes > 0) {
    workspace_ = Value(gpu::AllocateDevice(workspace_bytes));
    // A row may not rely on what was there before.
    Check(Poison(workspace_.get(), workspace_bytes, stream), "poisoning the workspace");
  }
  const bool moves_only = std::holds_alternative<TransposeProblem>(problem);
  std::uint64_t seed = 1;
  for (int slot = 0; slot < slots; ++slot) {
    gpu::DeviceBytes set = Value(gpu::AllocateDevice(SetBytes(problem)));
    auto* next = static_cast<std::byte*>(set.get());
    Operands operands;
    int index = 0;
    for (std::int64_t count : InputCounts(problem)) {
      const DType dtype = InDType(problem);
      const std::size_t bytes = static_cast<std::size_t>(count) * SizeOf(dtype);
      Check(moves_only ? FillBits(next, bytes, seed << 40, stream)
                       : FillNormal(next, dtype, count, seed << 40, stream),
            "filling an operand");
      ++seed;
      operands.in[index++] = next;
      next += Aligned(bytes);
    }
    operands.out = next;
    operands.scalars = static_cast<const StepScalars*>(scalars_.get());
    operands.workspace = workspace_.get();
    operands.workspace_bytes = workspace_bytes;
    operands_.push_back(operands);
    sets_.push_back(std::move(set));
  }
  Check(cudaStreamSynchronize(stream), "filling the operands");
}

Operands OperandSlots::At(int slot) const { return operands_[static_cast<std::size_t>(slot)]; }

}  // namespace warpline::bench
