// The C library's functions for vectors (libmvec of glibc 2.35 and later on x86-64). They exist for vectors
// of 16, 32 and 64 bytes. Their results differ in the last bits from each other, and from those of the scalar
// functions. So a process uses only one kind.
#ifndef WARPLINE_KERNELS_CPU_VECTOR_MATH_H_
#define WARPLINE_KERNELS_CPU_VECTOR_MATH_H_

#include <cmath>
#include <cstring>

#include "kernels/map/functions.h"

#if defined(__x86_64__) && defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 35)
#define WARPLINE_HAS_VECTOR_MATH 1
#include <immintrin.h>
#endif
#endif

// The operation, and the functions for float and double. Other functions, such as log and sin, would exceed
// the error bounds in the table of operations (kernels/map/operations.h).
#define WARPLINE_VECTOR_FUNCTIONS(X) \
  X(Exp, expf, exp)                  \
  X(Exp2, exp2f, exp2)               \
  X(Expm1, expm1f, expm1)            \
  X(Log2, log2f, log2)               \
  X(Log1p, log1pf, log1p)            \
  X(Asinh, asinhf, asinh)            \
  X(Tanh, tanhf, tanh)               \
  X(Erf, erff, erf)

#ifdef WARPLINE_HAS_VECTOR_MATH
extern "C" {
// Names in the vector ABI of x86-64: b is SSE, d AVX2 and e AVX-512; N means no mask; then follows the number
// of elements of a vector.
#define WARPLINE_DECLARE(operation, of_float, of_double) \
  __m128 _ZGVbN4v_##of_float(__m128) noexcept;           \
  __m256 _ZGVdN8v_##of_float(__m256) noexcept;           \
  __m512 _ZGVeN16v_##of_float(__m512) noexcept;          \
  __m128d _ZGVbN2v_##of_double(__m128d) noexcept;        \
  __m256d _ZGVdN4v_##of_double(__m256d) noexcept;        \
  __m512d _ZGVeN8v_##of_double(__m512d) noexcept;
WARPLINE_VECTOR_FUNCTIONS(WARPLINE_DECLARE)
#undef WARPLINE_DECLARE
}

// AVX2 without fma. Otherwise the compiler would use fma in loops of complex products, even without
// contraction.
#define WARPLINE_AVX2 __attribute__((target("avx2")))
#define WARPLINE_AVX512 __attribute__((target("avx512f")))
#endif

namespace warpline::cpu {

// Defines Apply(vector) if there are vector functions for an operation.
template <typename Function>
struct VectorMath {
  static constexpr bool kHas = false;
};

#ifdef WARPLINE_HAS_VECTOR_MATH
#define WARPLINE_APPLY(operation, of_float, of_double)                                    \
  template <>                                                                             \
  struct VectorMath<map::operation> {                                                     \
    static constexpr bool kHas = true;                                                    \
    static __m128 Apply(__m128 x) { return ::_ZGVbN4v_##of_float(x); }                    \
    static __m128d Apply(__m128d x) { return ::_ZGVbN2v_##of_double(x); }                 \
    WARPLINE_AVX2 static __m256 Apply(__m256 x) { return ::_ZGVdN8v_##of_float(x); }      \
    WARPLINE_AVX2 static __m256d Apply(__m256d x) { return ::_ZGVdN4v_##of_double(x); }   \
    WARPLINE_AVX512 static __m512 Apply(__m512 x) { return ::_ZGVeN16v_##of_float(x); }   \
    WARPLINE_AVX512 static __m512d Apply(__m512d x) { return ::_ZGVeN8v_##of_double(x); } \
  };
WARPLINE_VECTOR_FUNCTIONS(WARPLINE_APPLY)
#undef WARPLINE_APPLY

// Returns the bytes of the widest vectors for which this processor has functions.
inline int VectorBytes() {
  static const int bytes = __builtin_cpu_supports("avx512f") ? 64 : __builtin_cpu_supports("avx2") ? 32 : 16;
  return bytes;
}

// Each loop applies the function to `count` numbers. The last vector is padded, so that a result does not
// depend on its position. `to` may be x.
#define WARPLINE_VECTOR_LOOP(name, target, bytes)                                    \
  template <typename Function, typename T>                                           \
  target void name(const T* x, T* to, int count) {                                   \
    typedef T Vector __attribute__((vector_size(bytes))); /* NOLINT: an attribute */ \
    constexpr int kLanes = static_cast<int>(bytes / sizeof(T));                      \
    Vector vector = {};                                                              \
    int i = 0;                                                                       \
    for (; i + kLanes <= count; i += kLanes) {                                       \
      std::memcpy(&vector, x + i, bytes);                                            \
      vector = VectorMath<Function>::Apply(vector);                                  \
      std::memcpy(to + i, &vector, bytes);                                           \
    }                                                                                \
    if (i == count) return;                                                          \
    const std::size_t rest = static_cast<std::size_t>(count - i) * sizeof(T);        \
    vector = Vector{};                                                               \
    std::memcpy(&vector, x + i, rest);                                               \
    vector = VectorMath<Function>::Apply(vector);                                    \
    std::memcpy(to + i, &vector, rest);                                              \
  }
WARPLINE_VECTOR_LOOP(ApplyTo16Bytes, , 16)
WARPLINE_VECTOR_LOOP(ApplyTo32Bytes, WARPLINE_AVX2, 32)
WARPLINE_VECTOR_LOOP(ApplyTo64Bytes, WARPLINE_AVX512, 64)
#undef WARPLINE_VECTOR_LOOP

template <typename Function, typename T>
void ApplyToVectors(const T* x, T* to, int count) {
  const int bytes = VectorBytes();
  if (bytes == 64) return ApplyTo64Bytes<Function>(x, to, count);
  if (bytes == 32) return ApplyTo32Bytes<Function>(x, to, count);
  ApplyTo16Bytes<Function>(x, to, count);
}
#endif

}  // namespace warpline::cpu

#endif  // WARPLINE_KERNELS_CPU_VECTOR_MATH_H_
