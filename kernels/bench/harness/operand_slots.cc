#include "kernels/bench/harness/operand_slots.h"

#include <algorithm>
#include <utility>

#include "kernels/bench/harness/check.h"
#include "kernels/gpu/random_data.h"
#include "kernels/operand_sizes.h"

namespace warpline::bench {
namespace {

// Rounds up to 256 bytes, as the server aligns the operands of a program.
std::size_t Aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

DType OutDType(const Problem& problem) { return OutputSize(problem).dtype; }

std::int64_t OutCount(const Problem& problem) { return OutputSize(problem).count; }

std::size_t OutBytes(const Problem& problem) { return OutputSize(problem).Bytes(); }

std::size_t SetBytes(const Problem& problem) {
  std::size_t bytes = Aligned(OutBytes(problem));
  for (const OperandSize& input : InputSizes(problem)) bytes += Aligned(input.Bytes());
  return bytes;
}

OperandSlots::OperandSlots(const Problem& problem, int slots, std::size_t workspace_bytes,
                           cudaStream_t stream) {
  if (const int count = ScalarCount(problem); count > 0) {
    const std::vector<StepScalars> scalars(static_cast<std::size_t>(count));
    const std::size_t bytes = scalars.size() * sizeof(StepScalars);
    scalars_ = Value(gpu::AllocateDevice(bytes));
    Check(cudaMemcpy(scalars_.get(), scalars.data(), bytes, cudaMemcpyHostToDevice), "copying scalars");
  }
  if (workspace_bytes > 0) {
    workspace_ = Value(gpu::AllocateDevice(workspace_bytes));
    // A row may not rely on what was there before.
    Check(gpu::Poison(workspace_.get(), workspace_bytes, stream), "poisoning the workspace");
  }
  const bool moves_only = std::holds_alternative<TransposeProblem>(problem);
  std::uint64_t seed = 1;
  for (int slot = 0; slot < slots; ++slot) {
    gpu::DeviceBytes set = Value(gpu::AllocateDevice(SetBytes(problem)));
    auto* next = static_cast<std::byte*>(set.get());
    Operands operands;
    int index = 0;
    for (const OperandSize& input : InputSizes(problem)) {
      Check(moves_only ? gpu::FillBits(next, input.Bytes(), seed << 40, stream)
                       : gpu::FillNumbers(next, input.dtype, input.count, seed << 40, stream),
            "filling an operand");
      ++seed;
      operands.in[index++] = next;
      next += Aligned(input.Bytes());
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
