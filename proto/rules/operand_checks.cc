#include "proto/rules/operand_checks.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/field_error.h"
#include "kernels/status_macros.h"
#include "proto/rules/tensor_rules.h"

namespace warpline {

absl::Status CheckTakes(const Operand& x, std::string_view operation, bool (*takes)(DType)) {
  if (takes(x.dtype)) return absl::OkStatus();
  return FieldError(x.field + ".data_type",
                    absl::StrCat(std::string(operation), " does not take ", TypeName(x.dtype),
                                 "; supported: ", NamesWhere(takes)));
}

absl::Status CheckSameType(const Operand& x, DType dtype, const std::string& of) {
  if (x.dtype == dtype) return absl::OkStatus();
  return FieldError(x.field + ".data_type",
                    absl::StrCat(TypeName(x.dtype), ", but ", of, " has ", TypeName(dtype)));
}

absl::StatusOr<int> CheckAxis(const std::string& field, std::int32_t axis, int rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  return FieldError(field, absl::StrCat(axis, " is outside of [", -rank, ", ", rank, ")"));
}

void Read(const Operand& x, Step& step) {
  step.inputs.push_back(x.tensor);
  if (x.offset == 0 && step.input_offsets.empty()) return;
  step.input_offsets.resize(step.inputs.size());
  step.input_offsets.back() = static_cast<std::size_t>(x.offset) * SizeOf(x.dtype);
}

absl::StatusOr<TensorSpec> DenseResult(const std::string& field, DType dtype, const Shape& shape) {
  ASSIGN_OR_RETURN(const std::size_t bytes, StorageBytes(field, dtype, shape, 0));
  return TensorSpec{dtype, shape, bytes};
}

absl::StatusOr<std::int64_t> BroadcastSize(const Operand& x, int axis, std::int64_t size, std::int64_t other,
                                           const char* what) {
  if (size == other || other == 1) return size;
  if (size == 1) return other;
  return FieldError(x.field + ".shape", absl::StrCat(what, " axis ", axis, " has size ", size,
                                                     ", which cannot be broadcast with ", other));
}

absl::Status CheckInteger(const char* field, double value, std::int64_t least, std::int64_t greatest) {
  if (value >= static_cast<double>(least) && value <= static_cast<double>(greatest) &&
      value == std::trunc(value)) {
    return absl::OkStatus();
  }
  return FieldError(
      field, absl::StrFormat("%.17g; for operands of integers it must be an integer in [%d, %d]", value,
                             least, greatest));
}

}  // namespace warpline
