// What the reductions compute, apart from who computes which part.
#ifndef WARPLINE_KERNELS_REDUCE_REDUCE_OPS_CUH_
#define WARPLINE_KERNELS_REDUCE_REDUCE_OPS_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/problem.h"

namespace warpline {

template <DType kDType>
struct DeviceType;
// clang-format off
template <> struct DeviceType<DType::kI32> { using type = std::int32_t; };
template <> struct DeviceType<DType::kF16> { using type = __half; };
template <> struct DeviceType<DType::kBF16> { using type = __nv_bfloat16; };
template <> struct DeviceType<DType::kF32> { using type = float; };
template <> struct DeviceType<DType::kF64> { using type = double; };
// clang-format on

// Conversions between element and arithmetic types.
template <typename To, typename From>
__device__ To Convert(From x) {
  if constexpr (std::is_same_v<From, __half>) {
    return static_cast<To>(__half2float(x));
  } else if constexpr (std::is_same_v<From, __nv_bfloat16>) {
    return static_cast<To>(__bfloat162float(x));
  } else if constexpr (std::is_same_v<To, __half>) {
    if constexpr (std::is_same_v<From, double>) return __double2half(x);
    if constexpr (!std::is_same_v<From, double>) return __float2half(x);
  } else if constexpr (std::is_same_v<To, __nv_bfloat16>) {
    if constexpr (std::is_same_v<From, double>) return __double2bfloat16(x);
    if constexpr (!std::is_same_v<From, double>) return __float2bfloat16(x);
  } else {
    return static_cast<To>(x);
  }
}

// An element and its index among the reduced elements. An aggregate without initialisers: it lies in shared
// memory.
template <typename Value>
struct Candidate {
  Value value;
  std::int64_t index;
};

// The monoid of one operation on elements T that computes in Value. Combine is associative but for rounding,
// and commutative: argmax compares indices instead of relying on an order.
template <ReduceOp kOp, typename T, typename Value>
struct Reduction {
  static constexpr bool kInteger = std::is_integral_v<T>;
  static constexpr bool kArgmax = kOp == ReduceOp::kArgmax;
  static constexpr bool kSums = kOp == ReduceOp::kSum || kOp == ReduceOp::kMean;
  using Total = std::conditional_t<kInteger, std::int64_t, Value>;
  using Acc = std::conditional_t<kArgmax, Candidate<Value>, std::conditional_t<kSums, Total, Value>>;
  using Result = std::conditional_t<
      kArgmax, std::int64_t,
      std::conditional_t<kInteger && kOp == ReduceOp::kSum, std::int64_t,
                         std::conditional_t<kInteger && kOp == ReduceOp::kMean, double, T>>>;

  using Limits = std::numeric_limits<Value>;
  static constexpr Value kHighest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  static constexpr Value kLowest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  static constexpr std::int64_t kNoIndex = std::numeric_limits<std::int64_t>::max();

  __device__ static Acc Identity() {
    if constexpr (kArgmax) {
      return {kLowest, kNoIndex};
    } else if constexpr (kSums) {
      return 0;
    } else {
      return kOp == ReduceOp::kMin ? kHighest : kLowest;
    }
  }

  __device__ static Acc Lift(T x, std::int64_t index) {
    if constexpr (kArgmax) {
      return {Convert<Value>(x), index};
    } else {
      return Convert<Acc>(x);
    }
  }

  __device__ static Acc Combine(Acc a, Acc b) {
    if constexpr (kArgmax) {
      const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
      const bool tie = a_nan ? b_nan : a.value == b.value;
      const bool take_a = tie ? a.index < b.index : (a_nan || (!b_nan && a.value > b.value));
      return take_a ? a : b;
    } else if constexpr (kSums) {
      return a + b;
    } else if constexpr (kOp == ReduceOp::kMin) {
      return a < b || a != a ? a : b;  // b if it is NaN
    } else {
      return a > b || a != a ? a : b;
    }
  }

  __device__ static Result Finish(Acc acc, std::int64_t count) {
    if constexpr (kArgmax) {
      return acc.index;
    } else if constexpr (kOp == ReduceOp::kMean) {
      using Quotient = std::conditional_t<kInteger, double, Value>;
      return Convert<Result>(static_cast<Quotient>(acc) / static_cast<Quotient>(count));
    } else {
      return Convert<Result>(acc);
    }
  }
};

// The arithmetic of the fast kernels: f32 for the narrow floats, the type itself otherwise.
template <typename T>
using FastValue = std::conditional_t<std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>, float, T>;

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_REDUCE_OPS_CUH_
