// Functions of the C library for vectors of 16 bytes (libmvec, of glibc 2.35 and later on x86-64). Their
// results differ from those of the functions for one number, so an array must go through one kind only.
#ifndef WARPLINE_KERNELS_CPU_VECTOR_MATH_H_
#define WARPLINE_KERNELS_CPU_VECTOR_MATH_H_

#include <algorithm>
#include <cmath>

#include "kernels/map/functions.h"

#if defined(__x86_64__) && defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 35)
#define WARPLINE_HAS_VECTOR_MATH 1
#include <emmintrin.h>
#endif
#endif

// The operation, and the functions for float and double. Others, such as log and sin, miss the bounds of the
// table of operations (kernels/map/operations.h) by an ulp or two.
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
// Names by the vector ABI of x86-64: b is SSE, N without a mask, then the elements of a vector.
#define WARPLINE_DECLARE(operation, of_float, of_double) \
  __m128 _ZGVbN4v_##of_float(__m128) noexcept;           \
  __m128d _ZGVbN2v_##of_double(__m128d) noexcept;
WARPLINE_VECTOR_FUNCTIONS(WARPLINE_DECLARE)
#undef WARPLINE_DECLARE
}
#endif

namespace warpline::cpu {

// True if there are vector functions for an operation: Apply(vector).
template <typename Function>
struct VectorMath {
  static constexpr bool kHas = false;
};

#ifdef WARPLINE_HAS_VECTOR_MATH
#define WARPLINE_APPLY(operation, of_float, of_double)                    \
  template <>                                                             \
  struct VectorMath<map::operation> {                                     \
    static constexpr bool kHas = true;                                    \
    static __m128 Apply(__m128 x) { return ::_ZGVbN4v_##of_float(x); }    \
    static __m128d Apply(__m128d x) { return ::_ZGVbN2v_##of_double(x); } \
  };
WARPLINE_VECTOR_FUNCTIONS(WARPLINE_APPLY)
#undef WARPLINE_APPLY

inline __m128 LoadVector(const float* x) { return _mm_loadu_ps(x); }
inline __m128d LoadVector(const double* x) { return _mm_loadu_pd(x); }
inline void StoreVector(float* to, __m128 x) { _mm_storeu_ps(to, x); }
inline void StoreVector(double* to, __m128d x) { _mm_storeu_pd(to, x); }

// Applies the function to `count` numbers. The last vector is padded, so that a result does not depend on its
// place. `to` may be x.
template <typename Function, typename T>
void ApplyToVectors(const T* x, T* to, int count) {
  constexpr int kLanes = static_cast<int>(16 / sizeof(T));
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    StoreVector(to + i, VectorMath<Function>::Apply(LoadVector(x + i)));
  }
  if (i == count) return;
  T rest[kLanes] = {}, results[kLanes];
  std::copy(x + i, x + count, rest);
  StoreVector(results, VectorMath<Function>::Apply(LoadVector(rest)));
  std::copy(results, results + (count - i), to + i);
}
#endif

}  // namespace warpline::cpu

#endif  // WARPLINE_KERNELS_CPU_VECTOR_MATH_H_
