// The class of a scalar: all that the making of a plan may look at. Pure.
#ifndef WARPLINE_PROTO_RULES_SCALAR_CLASS_H_
#define WARPLINE_PROTO_RULES_SCALAR_CLASS_H_

#include <cstdint>
#include <limits>

namespace warpline {

// Every integer of up to this size is a double.
inline constexpr std::int64_t kExactIntegers = std::int64_t{1} << 53;

// Requests that differ in the values of their scalars share a plan if each of these is of the same class. So
// every rule that looks at a value (ReadsC in convert_step.h, CheckInteger in operand_checks.h) must decide
// the same for all values of one class.
enum class ScalarClass : std::uint8_t {
  kZero,         // of either sign
  kInt32,        // another integer that fits into 32 bits
  kExact,        // another integer of up to kExactIntegers
  kZeroAsFloat,  // not 0, but rounded to f32 it is
  kOther,        // fractions, larger integers, infinities and NaN
};

inline ScalarClass ClassOf(double value) {
  constexpr auto kExact = static_cast<double>(kExactIntegers);
  if (value == 0) return ScalarClass::kZero;
  if (static_cast<float>(value) == 0) return ScalarClass::kZeroAsFloat;
  if (!(value >= -kExact && value <= kExact)) return ScalarClass::kOther;
  const auto integer = static_cast<std::int64_t>(value);
  if (static_cast<double>(integer) != value) return ScalarClass::kOther;
  const bool small = integer >= std::numeric_limits<std::int32_t>::min() &&
                     integer <= std::numeric_limits<std::int32_t>::max();
  return small ? ScalarClass::kInt32 : ScalarClass::kExact;
}

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_SCALAR_CLASS_H_
