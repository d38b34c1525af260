// Rules that several operations share.
#ifndef WARPLINE_PROTO_RULES_OPERAND_CHECKS_H_
#define WARPLINE_PROTO_RULES_OPERAND_CHECKS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "proto/rules/convert_step.h"

namespace warpline {

inline std::string TypeName(DType dtype) { return std::string(Name(dtype)); }

// Returns INVALID_ARGUMENT, with the names of the supported types, unless the operation supports the type of
// `x`.
absl::Status CheckTakes(const Operand& x, std::string_view operation, bool (*takes)(DType));
absl::Status CheckSameType(const Operand& x, DType dtype, const std::string& of);
// Returns the axis for a number in [-rank, rank).
absl::StatusOr<int> CheckAxis(const std::string& field, std::int32_t axis, int rank);
// Adds x to the operands that the step reads.
void Read(const Operand& x, Step& step);
// Returns a dense result of this type and shape. `field` is blamed if the size does not fit into 63 bits.
absl::StatusOr<TensorSpec> DenseResult(const std::string& field, DType dtype, const Shape& shape);
// Returns the size along an axis of the result to which `x` and another operand are broadcast. Examples: b
// and a, or c and d.
absl::StatusOr<std::int64_t> BroadcastSize(const Operand& x, int axis, std::int64_t size, std::int64_t other,
                                           const char* what);
// Checks that alpha, beta or a factor of integers is an integer from `least` to `greatest`. The outcome is
// the same for all values of one class (scalar_class.h).
absl::Status CheckInteger(const char* field, double value, std::int64_t least, std::int64_t greatest);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_OPERAND_CHECKS_H_
