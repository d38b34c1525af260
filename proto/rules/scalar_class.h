// The class of a scalar. A plan may depend only on this class, not on the value. Pure.
#ifndef WARPLINE_PROTO_RULES_SCALAR_CLASS_H_
#define WARPLINE_PROTO_RULES_SCALAR_CLASS_H_

#include <cstdint>
#include <limits>

namespace warpline {

// A double represents every integer of at most this magnitude.
inline constexpr std::int64_t kExactIntegers = std::int64_t{1} << 53;

// Requests that differ only in the values of their scalars share a plan if the scalars have the same classes.
// So every rule that looks at a value (ReadsC in convert_step.h, CheckInteger in operand_checks.h) must
// decide the same for all values of one class.
enum class ScalarClass : std::uint8_t {
  kZero,         // of either sign
  kInt32,        // another integer that fits into 32 bits
  kExact,        // another integer of at most kExactIntegers
  kZeroAsFloat,  // nonzero, but 0 when rounded to f32
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
