// Makes a valid problem from the operands and options of one step of a program. The rules are the same for a
// request of one operation and for a step of a chain. Pure.
#ifndef WARPLINE_SERVER_RPC_CODEC_CONVERT_STEP_H_
#define WARPLINE_SERVER_RPC_CODEC_CONVERT_STEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/program.h"
#include "server/plan/plan.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// A tensor that a step reads.
struct Operand {
  std::string field;  // as errors name it: "a", or "inputs[0]"
  int tensor = -1;    // index into Program::tensors
  DType dtype = DType::kF32;
  Shape shape;
  std::int64_t row_stride = 0;  // never the 0 that means dense
};

// A scalar as a request has it: its value, for the rules to check, and where the values of other requests
// with the same plan will be found.
struct Scalar {
  double value = 0;
  PlannedScalar planned;
};

// The scalar of a field that is absent.
inline Scalar Absent(double otherwise) { return {otherwise, {.otherwise = otherwise}}; }

// A step whose place among the tensors (Step::output) is still open, and its result.
struct ConvertedStep {
  Step step;
  TensorSpec output;
  PlannedScalars scalars;  // if the step reads any
};

struct TransposeOptions {
  std::vector<std::int32_t> perm;
};

struct GemmOptions {
  bool trans_a = false, trans_b = false;
  Scalar alpha = Absent(1), beta = Absent(0);
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

absl::StatusOr<ConvertedStep> ConvertTranspose(const Operand& x, const TransposeOptions& options);
// `c` is null unless ReadsC holds. Its shape need not have been checked before. `bias` may be null.
absl::StatusOr<ConvertedStep> ConvertGemm(const Operand& a, const Operand& b, const Operand* c,
                                          const Operand* bias, const GemmOptions& options);
// Checks that C has the right type and shape although it is not read.
absl::Status CheckUnreadC(const Operand& c, const ConvertedStep& gemm);
absl::StatusOr<ConvertedStep> ConvertReduce(const Operand& x, const ReduceOptions& options);
absl::StatusOr<ConvertedStep> ConvertCast(const Operand& x, v1::DataType data_type);
absl::StatusOr<ConvertedStep> ConvertScale(const Operand& x, const Scalar& factor);
absl::StatusOr<ConvertedStep> ConvertAdd(const Operand& x, const Operand& y);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_CONVERT_STEP_H_
