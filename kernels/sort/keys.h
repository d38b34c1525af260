// Represents elements as unsigned integers of their size, whose order is that of the sort. So four types of
// keys serve all data types, and sorts compare only integers.
#ifndef WARPLINE_KERNELS_SORT_KEYS_H_
#define WARPLINE_KERNELS_SORT_KEYS_H_

#include <cstdint>
#include <type_traits>

#include "kernels/dtype.h"
#include "kernels/host_device.h"
#include "kernels/order_problems.h"

namespace warpline {

// How elements of one type are converted to keys.
struct KeyRule {
  // The bits of the magnitude of infinity: greater magnitudes are NaN. 0: integers.
  std::uint64_t infinity = 0;
  std::uint64_t sign = 0;  // the sign bit; 0: unsigned integers and bool
  bool descending = false;
  bool nan_first = false;
  // True: -0 and +0 have the same key. False: -0 has a smaller key than +0 (before `descending` inverts it),
  // and ElementOf can compute each element from its key, except the bits of a NaN.
  bool joins_zeros = true;
};

// Returns the rule of a type in ascending order, with NaN last.
constexpr KeyRule KeyRuleOf(DType dtype) {
  KeyRule rule;
  if (IsFloat(dtype) || IsSigned(dtype)) rule.sign = std::uint64_t{1} << (8 * SizeOf(dtype) - 1);
  if (dtype == DType::kF16) rule.infinity = 0x7c00;
  if (dtype == DType::kBF16) rule.infinity = 0x7f80;
  if (dtype == DType::kF32) rule.infinity = 0x7f80'0000;
  if (dtype == DType::kF64) rule.infinity = 0x7ff0'0000'0000'0000;
  return rule;
}

// Returns the rule of a sort. If only elements are requested, equal ones need no order. They are made from
// their keys; each NaN becomes the quiet NaN of the type.
constexpr KeyRule KeyRuleOf(const SortProblem& problem) {
  KeyRule rule = KeyRuleOf(problem.dtype);
  rule.descending = problem.descending;
  rule.nan_first = problem.nan_first;
  rule.joins_zeros = problem.indices;
  return rule;
}

// Returns the key of an element with these bits. U is the unsigned type of its size.
template <typename U>
WARPLINE_HOST_DEVICE constexpr U KeyOf(U bits, const KeyRule& rule) {
  const auto sign = static_cast<U>(rule.sign);
  auto key = static_cast<U>(bits ^ sign);
  if (rule.infinity != 0) {
    const auto magnitude = static_cast<U>(bits & static_cast<U>(~sign));
    if (magnitude > static_cast<U>(rule.infinity)) return rule.nan_first ? U{0} : static_cast<U>(~U{0});
    if (rule.joins_zeros && magnitude == 0) bits = 0;
    // Signs are random, so this has no branch: all bits of a negative number are inverted.
    const auto negative = static_cast<U>(U{0} - static_cast<U>((bits & sign) != 0));
    key = static_cast<U>(bits ^ (negative | sign));
  }
  return rule.descending ? static_cast<U>(~key) : key;
}

// Returns the element for a key, if zeros are not joined. A NaN becomes the positive quiet NaN.
template <typename U>
WARPLINE_HOST_DEVICE constexpr U ElementOf(U key, const KeyRule& rule) {
  const auto sign = static_cast<U>(rule.sign);
  if (rule.infinity != 0 && key == (rule.nan_first ? U{0} : static_cast<U>(~U{0}))) {
    // The first bit of the mantissa, which is the highest below the exponent, makes it quiet.
    const auto infinity = static_cast<U>(rule.infinity);
    const auto exponent_end = static_cast<U>(infinity & static_cast<U>(~infinity + 1));  // its lowest bit
    return static_cast<U>(infinity | (exponent_end >> 1));
  }
  if (rule.descending) key = static_cast<U>(~key);
  if (rule.infinity == 0) return static_cast<U>(key ^ sign);
  const auto negative = static_cast<U>(U{0} - static_cast<U>((key & sign) == 0));
  return static_cast<U>(key ^ (negative | sign));
}

// Calls f with the unsigned type of elements of this size, 1 to 8 bytes.
template <typename F>
void VisitKeyType(DType dtype, F&& f) {
  switch (SizeOf(dtype)) {
    case 1:
      return f(std::type_identity<std::uint8_t>());
    case 2:
      return f(std::type_identity<std::uint16_t>());
    case 4:
      return f(std::type_identity<std::uint32_t>());
    default:
      return f(std::type_identity<std::uint64_t>());
  }
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_SORT_KEYS_H_
