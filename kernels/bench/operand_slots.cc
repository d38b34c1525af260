#include "kernels/bench/operand_slots.h"

#include <algorithm>
#include <utility>

#include "kernels/bench/check.h"
#include "kernels/bench/data.h"

namespace warpline::bench {
namespace {

struct Operand {
  std::int64_t count;
  DType dtype;

  std::size_t Bytes() const { return static_cast<std::size_t>(count) * SizeOf(dtype); }
};

// Elements from the first to the last of an array that is broadcast along the axes of stride 0.
std::int64_t Extent(const Shape& shape, const Strides& strides) {
  std::int64_t last = 0;
  for (int axis = 0; axis < shape.rank; ++axis) last += (shape[axis] - 1) * strides[axis];
  return last + 1;
}

// Matrices of an operand: the largest index that occurs tells how many.
std::int64_t Matrices(const GemmBatch& batch, const std::int64_t* steps) {
  std::int64_t last = 0;
  for (int axis = 0; axis < batch.rank; ++axis) last += (batch.dims[axis] - 1) * steps[axis];
  return last + 1;
}

std::vector<Operand> InputsOf(const TransposeProblem& p) { return {{p.shape.Count(), p.dtype}}; }
std::vector<Operand> InputsOf(const ReduceProblem& p) { return {{p.shape.Count(), p.dtype}}; }
std::vector<Operand> InputsOf(const ElementwiseProblem& p) {
  std::vector<Operand> inputs = {{Extent(p.shape, p.x_strides), p.dtype}};
  if (p.op == ElementwiseOp::kAdd) inputs.push_back({Extent(p.shape, p.y_strides), p.dtype});
  return inputs;
}
std::vector<Operand> InputsOf(const GemmProblem& p) {
  std::vector<Operand> inputs = {{Matrices(p.batch, p.batch.a) * p.StrideA(), p.dtype},
                                 {Matrices(p.batch, p.batch.b) * p.StrideB(), p.dtype}};
  if (p.has_c) inputs.push_back({Matrices(p.batch, p.batch.c) * p.StrideC(), p.OutDType()});
  if (p.has_bias) inputs.push_back({p.n, p.OutDType()});
  return inputs;
}

std::vector<Operand> InputsOf(const Problem& problem) {
  return std::visit([](const auto& p) { return InputsOf(p); }, problem);
}

// As the server aligns the operands of a program.
std::size_t Aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

DType OutDType(const Problem& problem) {
  if (const auto* gemm = std::get_if<GemmProblem>(&problem)) return gemm->OutDType();
  if (const auto* reduce = std::get_if<ReduceProblem>(&problem)) return reduce->OutDType();
  if (const auto* each = std::get_if<ElementwiseProblem>(&problem)) return each->out_dtype;
  return DTypeOf(problem);
}

std::int64_t OutCount(const Problem& problem) {
  if (const auto* gemm = std::get_if<GemmProblem>(&problem)) return gemm->batch.Count() * gemm->m * gemm->n;
  if (const auto* reduce = std::get_if<ReduceProblem>(&problem)) return reduce->OutputShape(false).Count();
  if (const auto* each = std::get_if<ElementwiseProblem>(&problem)) return each->shape.Count();
  return std::get<TransposeProblem>(problem).shape.Count();
}

std::size_t OutBytes(const Problem& problem) {
  return static_cast<std::size_t>(OutCount(problem)) * SizeOf(OutDType(problem));
}

std::size_t SetBytes(const Problem& problem) {
  std::size_t bytes = Aligned(OutBytes(problem));
  for (const Operand& input : InputsOf(problem)) bytes += Aligned(input.Bytes());
  return bytes;
}

OperandSlots::OperandSlots(const Problem& problem, int slots, std::size_t workspace_bytes,
                           cudaStream_t stream) {
  if (ReadsScalars(problem)) {
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
    for (const Operand& input : InputsOf(problem)) {
      Check(moves_only ? FillBits(next, input.Bytes(), seed << 40, stream)
                       : FillNumbers(next, input.dtype, input.count, seed << 40, stream),
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
