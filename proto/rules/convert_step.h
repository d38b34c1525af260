// The rules of one operation. They make a valid problem from its operands and options, or return why they are
// invalid. The same rules apply to a request of one operation and to a step of a program, in the server and
// in its clients. Pure.
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
  std::string field;  // its name in errors: "a", or "inputs[0]"
  int tensor = -1;    // index into Program::tensors
  DType dtype = DType::kF32;
  Shape shape;
  Strides strides{};        // may be negative; irrelevant along axes of size 1
  std::int64_t offset = 0;  // position of the first element, in elements from the start of the tensor
  // The tensor that contains the number of elements along the first axis, if that is known only after the
  // run. Then `shape` has the maximum. -1: `shape` is exact.
  int count_tensor = -1;
};

// The operands of a step, in order. In a client, an unknown operand is null.
using OperandList = std::vector<const Operand*>;

// A scalar of a request. Rules look only at the value, and decide the same for all values of one class
// (scalar_class.h). `number` identifies the scalar for the caller; rules only pass it on. It is empty if the
// request does not contain the scalar.
struct Scalar {
  double value = 0;
  std::optional<std::size_t> number{};
};

// Reads a scalar of a message. `given` is the content of the field: in a client the value itself, in a header
// that the server has scanned a token for it.
using ScalarReader = absl::FunctionRef<absl::StatusOr<Scalar>(const char* field, double given)>;

// Scalars of a step, as in StepScalars.
struct ReadScalars {
  Scalar alpha, beta;
  bool integers = false;  // the step computes in integers, so the values are integers
  // Set for an integer constant of a map. It is part of the plan, and takes the place of alpha.
  std::optional<std::int64_t> integer{};
};

// A step and its results. Its tensor indices (Step::output and Step::further) are not set yet.
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

// Returns whether C is read. This depends on the value of beta as kernels compute with it, so that all
// kernels agree. The result is the same for all values of one class (scalar_class.h).
bool ReadsC(DType dtype, double beta);
// Same for operands whose type may be unknown. Returns nothing if the result depends on the type.
std::optional<bool> ReadsC(std::optional<DType> dtype, double beta);
// Returns INVALID_ARGUMENT if the request reads C but does not contain it.
absl::Status CheckHasC(bool reads_c, bool has_c, double beta);

// Operands of a transpose and of a reduction must have rows (RowStrideOf), and so must c and bias. a and b
// must satisfy IsMatrices. Other operands may be any views.
absl::StatusOr<ConvertedStep> ConvertTranspose(const Operand& x, const TransposeOptions& options);
// `c` must not be null if ReadsC holds. A request may also contain a `c` that is not read; its type and shape
// must still fit. `bias` may be null.
absl::StatusOr<ConvertedStep> ConvertGemm(const Operand& a, const Operand& b, const Operand* c,
                                          const Operand* bias, const GemmOptions& options);
absl::StatusOr<ConvertedStep> ConvertReduce(const Operand& x, const ReduceOptions& options);
absl::StatusOr<ConvertedStep> ConvertCast(const Operand& x, v1::DataType data_type);
absl::StatusOr<ConvertedStep> ConvertScale(const Operand& x, const Scalar& factor);
absl::StatusOr<ConvertedStep> ConvertAdd(const Operand& x, const Operand& y);
// The counts of inputs, nodes and results (ProgramRules) must have been checked before ConvertMap is called.
absl::Status CheckMapCounts(std::size_t inputs, const v1::MapStep& map);
absl::StatusOr<ConvertedStep> ConvertMap(const OperandList& inputs, const v1::MapStep& map,
                                         ScalarReader scalars);

// Refuses names of more than 64 bytes: errors, logs and cache keys repeat the name. "auto" and "" mean the
// same.
absl::Status CheckVariantName(std::string_view variant);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_CONVERT_STEP_H_
