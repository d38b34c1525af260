// The rules of one operation: makes a valid problem from its operands and options, or says why there is none.
// They are the same for a request of one operation and for a step of a program, in the server and in its
// clients. Pure.
#ifndef WARPLINE_PROTO_RULES_CONVERT_STEP_H_
#define WARPLINE_PROTO_RULES_CONVERT_STEP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/program.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// An operand of a step: a tensor, or a view of one.
struct Operand {
  std::string field;  // as errors name it: "a", or "inputs[0]"
  int tensor = -1;    // index into Program::tensors
  DType dtype = DType::kF32;
  Shape shape;
  Strides strides{};        // may be negative; along axes of size 1 they mean nothing
  std::int64_t offset = 0;  // of the first element, in elements from the start of the tensor
  // The tensor that says how many elements the first axis has, if that is known only after the run: `shape`
  // has the most. -1: `shape` is known.
  int count_tensor = -1;
};

// The operands of a step, in order. In a client, those that are unknown are null.
using OperandList = std::vector<const Operand*>;

// A scalar as a request has it. Rules look at the value alone, and decide the same for all values of one
// class (scalar_class.h). `number` is the caller's name for the scalar, which the rules pass on: nothing if
// the request leaves it out.
struct Scalar {
  double value = 0;
  std::optional<std::size_t> number{};
};

// Reads a scalar that a message has. `given` is the content of the field: the value itself in a client, and a
// token for it in a header that the server has scanned.
using ScalarReader = absl::FunctionRef<absl::StatusOr<Scalar>(const char* field, double given)>;

// Scalars of a step, as in StepScalars.
struct ReadScalars {
  Scalar alpha, beta;
  bool integers = false;  // the step computes in integers, and so the values are
  // An integer that is part of the plan, as alpha.
  std::optional<std::int64_t> integer{};
};

// A step whose places among the tensors (Step::output and Step::further) are still open, and its results.
struct ConvertedStep {
  Step step;
  TensorSpec output;
  std::vector<TensorSpec> further;   // Step::further
  std::vector<ReadScalars> scalars;  // ScalarCount of them
};

struct TransposeOptions {
  std::vector<std::int32_t> perm;
};

struct GemmOptions {
  bool trans_a = false, trans_b = false;
  Scalar alpha{.value = 1}, beta{.value = 0};
  v1::Precision precision = v1::PRECISION_UNSPECIFIED;
  v1::Activation activation = v1::ACTIVATION_UNSPECIFIED;
  v1::DataType out_data_type = v1::DATA_TYPE_UNSPECIFIED;
};

struct ReduceOptions {
  v1::ReduceOp op = v1::REDUCE_OP_UNSPECIFIED;
  std::vector<std::int32_t> axes;
  bool keepdims = false;
  v1::DataType out_data_type = v1::DATA_TYPE_UNSPECIFIED;
  std::int32_t ddof = 0;
};

// Returns whether C is read. This depends on the value of beta that kernels compute with, so that all kernels
// agree. The result is the same for all values of one class (scalar_class.h).
bool ReadsC(DType dtype, double beta);
// The same for operands of a type that need not be known. Nothing if the result depends on it.
std::optional<bool> ReadsC(std::optional<DType> dtype, double beta);
// INVALID_ARGUMENT unless a request that reads C has it.
absl::Status CheckHasC(bool reads_c, bool has_c, double beta);

// Operands of a transpose and of a reduction have rows (RowStrideOf), and so have c and bias; a and b are
// IsMatrices. The others may be any views.
absl::StatusOr<ConvertedStep> ConvertTranspose(const Operand& x, const TransposeOptions& options);
// `c` is not null if ReadsC holds. A request may also give a `c` that is not read; its type and shape must
// fit all the same. `bias` may be null.
absl::StatusOr<ConvertedStep> ConvertGemm(const Operand& a, const Operand& b, const Operand* c,
                                          const Operand* bias, const GemmOptions& options);
absl::StatusOr<ConvertedStep> ConvertReduce(const Operand& x, const ReduceOptions& options);
absl::StatusOr<ConvertedStep> ConvertCast(const Operand& x, v1::DataType data_type);
absl::StatusOr<ConvertedStep> ConvertScale(const Operand& x, const Scalar& factor);
absl::StatusOr<ConvertedStep> ConvertAdd(const Operand& x, const Operand& y);
// The counts of inputs and nodes, and of results (ProgramRules), must have been checked.
absl::Status CheckMapCounts(std::size_t inputs, const v1::MapStep& map);
absl::StatusOr<ConvertedStep> ConvertMap(const OperandList& inputs, const v1::MapStep& map,
                                         ScalarReader scalars);

// Refuses names of more than 64 bytes: errors, logs and cache keys repeat the name. "auto" and "" mean the
// same.
absl::Status CheckVariantName(std::string_view variant);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_CONVERT_STEP_H_
