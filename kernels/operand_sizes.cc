#include "kernels/operand_sizes.h"

#include <cstdlib>

namespace warpline {
namespace {

// Returns the number of elements that an array spans. Axes of stride 0 are broadcast. Along axes with
// negative strides, the elements before the first one count too.
std::int64_t Extent(const Shape& shape, const Strides& strides) {
  std::int64_t span = 1;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (shape[axis] == 0) return 0;
    span += (shape[axis] - 1) * std::abs(strides[axis]);
  }
  return span;
}

std::vector<OperandSize> Inputs(const TransposeProblem& p) {
  return {{Extent(p.shape, RowMajorStrides(p.shape, p.row_stride)), p.dtype}};
}
std::vector<OperandSize> Inputs(const ReduceProblem& p) {
  return {{Extent(p.shape, RowMajorStrides(p.shape, p.row_stride)), p.dtype}};
}
std::vector<OperandSize> Inputs(const MapProblem& p) {
  std::vector<OperandSize> inputs;
  for (const MapInput& input : p.inputs) inputs.push_back({Extent(p.shape, input.strides), input.dtype});
  return inputs;
}
// Returns the number of elements that `matrices` matrices span. Their rows have `row` elements and are `ld`
// apart.
std::int64_t Extent(std::int64_t matrices, std::int64_t stride, std::int64_t row, std::int64_t ld) {
  return matrices * stride == 0 || row == 0 ? 0 : matrices * stride - (ld - row);
}

std::vector<OperandSize> Inputs(const GemmProblem& p) {
  std::vector<OperandSize> inputs = {
      {Extent(p.batch.CountAlong(p.batch.a), p.StrideA(), p.trans_a ? p.m : p.k, p.lda), p.dtype},
      {Extent(p.batch.CountAlong(p.batch.b), p.StrideB(), p.trans_b ? p.k : p.n, p.ldb), p.dtype}};
  if (p.has_c) {
    inputs.push_back({Extent(p.batch.CountAlong(p.batch.c), p.StrideC(), p.n, p.ldc), p.OutDType()});
  }
  if (p.has_bias) inputs.push_back({p.n, p.OutDType()});
  return inputs;
}

std::vector<OperandSize> Inputs(const TakeProblem& p) {
  const std::int64_t x = Extent(p.shape, p.x_strides);
  const bool reads = x > 0 && p.axis_size > 0;
  return {{reads ? x + (p.axis_size - 1) * std::abs(p.axis_stride) : 0, p.dtype},
          {Extent(p.shape, p.index_strides), p.index_dtype}};
}
std::vector<OperandSize> Inputs(const PutProblem& p) {
  return {{p.shape.Count(), p.dtype},
          {Extent(p.index_shape, p.index_strides), p.index_dtype},
          {Extent(p.index_shape, p.value_strides), p.dtype}};
}
std::vector<OperandSize> Inputs(const ScanProblem& p) { return {{p.outer * p.count * p.inner, p.dtype}}; }
std::vector<OperandSize> Inputs(const SortProblem& p) { return {{p.rows * p.count, p.dtype}}; }
std::vector<OperandSize> Inputs(const SearchProblem& p) {
  std::vector<OperandSize> inputs = {{p.count, p.dtype}, {p.needles, p.dtype}};
  if (p.has_sorter) inputs.push_back({p.count, p.sorter_dtype});
  return inputs;
}

std::vector<OperandSize> Inputs(const CompressProblem& p) {
  return {{p.rows * p.width, p.dtype}, {p.rows, DType::kBool}};
}

OperandSize Output(const TransposeProblem& p) { return {p.shape.Count(), p.dtype}; }
OperandSize Output(const ReduceProblem& p) { return {p.OutputShape(false).Count(), p.OutDType()}; }
OperandSize Output(const MapProblem& p) { return {Extent(p.shape, p.OutStrides()), p.OutDType()}; }
OperandSize Output(const TakeProblem& p) { return {p.shape.Count(), p.dtype}; }
OperandSize Output(const PutProblem& p) { return {p.shape.Count(), p.dtype}; }
OperandSize Output(const ScanProblem& p) { return {p.outer * p.count * p.inner, p.dtype}; }
OperandSize Output(const SortProblem& p) { return {p.rows * p.taken, p.values ? p.dtype : DType::kI64}; }
OperandSize Output(const SearchProblem& p) { return {p.needles, DType::kI64}; }
OperandSize Output(const CompressProblem& p) { return {p.rows * p.width, p.dtype}; }
OperandSize Output(const GemmProblem& p) { return {p.batch.Count() * p.m * p.n, p.OutDType()}; }

}  // namespace

std::vector<OperandSize> InputSizes(const Problem& problem) {
  return std::visit([](const auto& p) { return Inputs(p); }, problem);
}

OperandSize OutputSize(const Problem& problem) {
  return std::visit([](const auto& p) { return Output(p); }, problem);
}

}  // namespace warpline
