// Functions of the C library that it has for vectors, too (libmvec, of glibc 2.35 and later on x86-64). A
// loop over one of them becomes a loop over vectors. Their results differ from those of the functions for one
// number, so a loop must never mix the two: see kIsVector.
#ifndef WARPLINE_KERNELS_CPU_VECTOR_MATH_H_
#define WARPLINE_KERNELS_CPU_VECTOR_MATH_H_

#include <cmath>
#include <type_traits>

#include "kernels/map/functions.h"

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#if __GLIBC_PREREQ(2, 35)
#define WARPLINE_HAS_VECTOR_MATH 1
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
#define WARPLINE_DECLARE(operation, of_float, of_double)                      \
  __attribute__((simd("notinbranch"), const)) float of_float(float) noexcept; \
  __attribute__((simd("notinbranch"), const)) double of_double(double) noexcept;
WARPLINE_VECTOR_FUNCTIONS(WARPLINE_DECLARE)
#undef WARPLINE_DECLARE
}
#endif

namespace warpline::cpu {

// The function of an operation, as loops apply it.
template <typename Function>
struct InLoops : Function {
  static constexpr bool kIsVector = false;
};

#ifdef WARPLINE_HAS_VECTOR_MATH
#define WARPLINE_APPLY(operation, of_float, of_double)       \
  template <>                                                \
  struct InLoops<map::operation> {                           \
    static constexpr bool kIsVector = true;                  \
    static float Apply(float x) { return ::of_float(x); }    \
    static double Apply(double x) { return ::of_double(x); } \
  };
WARPLINE_VECTOR_FUNCTIONS(WARPLINE_APPLY)
#undef WARPLINE_APPLY
#endif

}  // namespace warpline::cpu

#endif  // WARPLINE_KERNELS_CPU_VECTOR_MATH_H_
