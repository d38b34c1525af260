#include "tests/testing/program_bytes.h"

#include <cstdint>
#include <type_traits>
#include <variant>

namespace warpline {
namespace {

// Appends the object representation of a value without padding.
template <typename T>
void Append(std::string& to, const T& value) {
  static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void Append(std::string& to, const Shape& shape) {
  Append(to, static_cast<std::int8_t>(shape.rank));
  for (int i = 0; i < shape.rank; ++i) Append(to, shape[i]);
}

void Append(std::string& to, const Strides& strides, int rank) {
  for (int i = 0; i < rank; ++i) Append(to, strides[i]);
}

void AppendProblem(std::string& to, const TransposeProblem& p) {
  Append(to, p.shape);
  for (int i = 0; i < p.shape.rank; ++i) Append(to, p.perm[i]);
  Append(to, p.row_stride);
}

void AppendProblem(std::string& to, const GemmProblem& p) {
  Append(to, p.OutDType());
  for (std::int64_t size : {p.m, p.n, p.k, p.lda, p.ldb, p.ldc}) Append(to, size);
  Append(to, static_cast<std::int8_t>(p.batch.rank));
  for (int i = 0; i < p.batch.rank; ++i) {
    for (std::int64_t size : {p.batch.dims[i], p.batch.a[i], p.batch.b[i], p.batch.c[i]}) Append(to, size);
  }
  const int flags = (p.trans_a ? 1 : 0) | (p.trans_b ? 2 : 0) | (p.has_c ? 4 : 0) | (p.has_bias ? 8 : 0);
  Append(to, static_cast<std::uint8_t>(flags));
  Append(to, p.activation);
  Append(to, p.precision);
}

void AppendProblem(std::string& to, const ReduceProblem& p) {
  Append(to, p.op);
  Append(to, p.OutDType());
  Append(to, p.shape);
  Append(to, p.axes_mask);
  Append(to, p.row_stride);
  Append(to, p.ddof);
}

void AppendProblem(std::string& to, const MapProblem& p) {
  Append(to, p.shape);
  Append(to, p.OutStrides(), p.shape.rank);
  Append(to, static_cast<std::int16_t>(p.inputs.size()));
  for (const MapInput& input : p.inputs) {
    Append(to, input.dtype);
    Append(to, input.strides, p.shape.rank);
  }
  Append(to, static_cast<std::int16_t>(p.nodes.size()));
  for (const MapNode& node : p.nodes) Append(to, node);
  Append(to, static_cast<std::int16_t>(p.further.size()));
  for (const std::int16_t node : p.further) Append(to, node);
}

void AppendProblem(std::string& to, const TakeProblem& p) {
  Append(to, p.index_dtype);
  Append(to, p.shape);
  Append(to, p.x_strides, p.shape.rank);
  Append(to, p.index_strides, p.shape.rank);
  Append(to, p.axis_size);
  Append(to, p.axis_stride);
}

void AppendProblem(std::string& to, const PutProblem& p) {
  Append(to, p.index_dtype);
  Append(to, p.shape);
  Append(to, p.axis);
  Append(to, p.index_shape);
  Append(to, p.index_strides, p.shape.rank);
  Append(to, p.value_strides, p.shape.rank);
}

void AppendProblem(std::string& to, const ScanProblem& p) {
  Append(to, p.op);
  for (const std::int64_t size : {p.outer, p.count, p.inner}) Append(to, size);
  for (const bool flag : {p.exclusive, p.reverse}) Append(to, flag);
}

void AppendProblem(std::string& to, const SortProblem& p) {
  for (const std::int64_t size : {p.rows, p.count, p.taken}) Append(to, size);
  for (const bool flag : {p.descending, p.nan_first, p.values, p.indices}) Append(to, flag);
  for (const std::int64_t k : p.Kth()) Append(to, k);
}

void AppendProblem(std::string& to, const SearchProblem& p) {
  for (const std::int64_t size : {p.count, p.needles}) Append(to, size);
  for (const bool flag : {p.right, p.has_sorter}) Append(to, flag);
  Append(to, p.sorter_dtype);
}

void AppendProblem(std::string& to, const CompressProblem& p) {
  Append(to, p.rows);
  Append(to, p.width);
}

}  // namespace

std::string ProgramBytes(const Program& program) {
  std::string key;
  key.reserve(64 + 96 * program.steps.size());
  for (const std::size_t count : {program.steps.size(), program.tensors.size(), program.outputs.size(),
                                  static_cast<std::size_t>(program.num_inputs)}) {
    Append(key, static_cast<std::uint32_t>(count));
  }
  for (const Step& step : program.steps) {
    Append(key, OpOf(step.problem));
    Append(key, DTypeOf(step.problem));
    std::visit([&](const auto& problem) { AppendProblem(key, problem); }, step.problem);
    Append(key, static_cast<std::uint8_t>(step.variant.size()));
    key += step.variant;
    Append(key, static_cast<std::uint16_t>(step.inputs.size()));
    Append(key, static_cast<std::uint16_t>(step.input_offsets.size()));
    for (int input : step.inputs) Append(key, input);
    for (std::size_t offset : step.input_offsets) Append(key, offset);
    Append(key, step.output);
    Append(key, step.output_offset);
    for (int output : step.further) Append(key, output);
  }
  for (int output : program.outputs) Append(key, output);
  for (const TensorSpec& tensor : program.tensors) Append(key, static_cast<std::uint64_t>(tensor.bytes));
  return key;
}

}  // namespace warpline
