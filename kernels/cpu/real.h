// Elements whose type is known only at run time, one at a time, for the plain loops.
#ifndef WARPLINE_KERNELS_CPU_REAL_H_
#define WARPLINE_KERNELS_CPU_REAL_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cpu/float16.h"
#include "kernels/dtype.h"
#include "kernels/saturating_cast.h"

namespace warpline::cpu {

// Casts a value of one arithmetic type to an element of another. `From` is double, float or a 64-bit integer.
template <typename To, typename From>
To ConvertTo(From value) {
  if constexpr (std::is_same_v<To, Bool>) {
    return Bool{value != 0};
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return SaturatingCast<To>(value);
  } else if constexpr (std::is_integral_v<To>) {
    return static_cast<To>(value);  // modulo
  } else {
    return RoundTo<To>(value);
  }
}

// Returns element `index`; exact if V can represent it.
template <typename V>
V LoadReal(DType dtype, const void* data, std::int64_t index) {
  V value = 0;
  VisitReal(dtype, [&]<typename T>(std::type_identity<T>) {
    const T element = static_cast<const T*>(data)[index];
    if constexpr (std::is_same_v<T, Bool>) {
      value = element.byte != 0 ? V{1} : V{0};
    } else {
      value = static_cast<V>(element);
    }
  });
  return value;
}

template <typename V>
void StoreReal(DType dtype, void* data, std::int64_t index, V value) {
  VisitReal(dtype,
            [&]<typename T>(std::type_identity<T>) { static_cast<T*>(data)[index] = ConvertTo<T>(value); });
}

}  // namespace warpline::cpu

#endif  // WARPLINE_KERNELS_CPU_REAL_H_
