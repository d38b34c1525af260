// The rules that several operations have in common.
#ifndef WARPLINE_PROTO_RULES_OPERAND_CHECKS_H_
#define WARPLINE_PROTO_RULES_OPERAND_CHECKS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "proto/rules/convert_step.h"

namespace warpline {

inline std::string TypeName(DType dtype) { return std::string(Name(dtype)); }

// Returns INVALID_ARGUMENT, with the names of the types that the operation takes, unless it takes the type of
// `x`.
absl::Status CheckTakes(const Operand& x, std::string_view operation, bool (*takes)(DType));
absl::Status CheckSameType(const Operand& x, DType dtype, const std::string& of);
// The axis that a number in [-rank, rank) means.
absl::StatusOr<int> CheckAxis(const std::string& field, std::int32_t axis, int rank);
// Adds x to what the step reads.
void Read(const Operand& x, Step& step);
// A dense result of this type and shape. `field` is the one to blame if the bytes do not fit into 63 bits.
absl::StatusOr<TensorSpec> DenseResult(const std::string& field, DType dtype, const Shape& shape);
// The size along an axis of the result to which `x` and another operand are broadcast, as b and a are, or c
// and d.
absl::StatusOr<std::int64_t> BroadcastSize(const Operand& x, int axis, std::int64_t size, std::int64_t other,
                                           const char* what);
// Checks alpha, beta or a factor of integers: it must be an integer from `least` to `greatest`. The outcome
// is the same for all values of one class (scalar_class.h).
absl::Status CheckInteger(const char* field, double value, std::int64_t least, std::int64_t greatest);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_OPERAND_CHECKS_H_
