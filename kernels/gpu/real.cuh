// The element types on the device, and access to elements whose type is known only at run time.
#ifndef WARPLINE_KERNELS_GPU_REAL_CUH_
#define WARPLINE_KERNELS_GPU_REAL_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/dtype.h"
#include "kernels/saturating_cast.h"

namespace warpline {

// A byte; only zero is false.
enum class DeviceBool : std::uint8_t {};

template <DType kDType>
struct DeviceType;
// clang-format off
template <> struct DeviceType<DType::kI32> { using type = std::int32_t; };
template <> struct DeviceType<DType::kF16> { using type = __half; };
template <> struct DeviceType<DType::kBF16> { using type = __nv_bfloat16; };
template <> struct DeviceType<DType::kF32> { using type = float; };
template <> struct DeviceType<DType::kF64> { using type = double; };
// clang-format on

// The arithmetic type of an element: the narrowest of f32, f64 and 32-bit and 64-bit integers that can
// represent all values of T.
template <typename T>
using NumberOf = std::conditional_t<
    std::is_same_v<T, double> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t>, T,
    std::conditional_t<std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16> ||
                           std::is_same_v<T, float>,
                       float, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>>>;

// Converts an element to a number; exact if V can represent it.
template <typename V, typename T>
__device__ V Widen(T x) {
  if constexpr (std::is_same_v<T, __half>) {
    return static_cast<V>(__half2float(x));
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return static_cast<V>(__bfloat162float(x));
  } else if constexpr (std::is_same_v<T, DeviceBool>) {
    return static_cast<V>(x != DeviceBool{} ? 1 : 0);
  } else {
    return static_cast<V>(x);
  }
}

// Converts a number to an element, rounded once. V is float, double, or a 32-bit or 64-bit integer. Floats
// become integers by SaturatingCast; integers become narrower integers modulo 2^bits.
template <typename T, typename V>
__device__ T Narrow(V x) {
  constexpr bool kFloat = std::is_floating_point_v<V>;
  if constexpr (std::is_same_v<T, DeviceBool>) {
    return static_cast<DeviceBool>(x != 0 ? 1 : 0);
  } else if constexpr (std::is_same_v<T, __half>) {
    if constexpr (std::is_same_v<V, float>) return __float2half_rn(x);
    if constexpr (std::is_same_v<V, double>) return __double2half(x);
    if constexpr (std::is_same_v<V, std::int32_t>) return __int2half_rn(x);
    if constexpr (std::is_same_v<V, std::uint32_t>) return __uint2half_rn(x);
    if constexpr (std::is_same_v<V, std::int64_t>) return __ll2half_rn(x);
    if constexpr (std::is_same_v<V, std::uint64_t>) return __ull2half_rn(x);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    if constexpr (std::is_same_v<V, float>) return __float2bfloat16_rn(x);
    if constexpr (std::is_same_v<V, double>) return __double2bfloat16(x);
    if constexpr (std::is_same_v<V, std::int32_t>) return __int2bfloat16_rn(x);
    if constexpr (std::is_same_v<V, std::uint32_t>) return __uint2bfloat16_rn(x);
    if constexpr (std::is_same_v<V, std::int64_t>) return __ll2bfloat16_rn(x);
    if constexpr (std::is_same_v<V, std::uint64_t>) return __ull2bfloat16_rn(x);
  } else if constexpr (std::is_integral_v<T> && kFloat) {
    return SaturatingCast<T>(x);
  } else {
    return static_cast<T>(x);
  }
}

#pragma nv_exec_check_disable
template <int kBytes, typename T, typename F>
__host__ __device__ void VisitIfOfSize(F&& f) {
  if constexpr (kBytes == 0 || sizeof(T) == kBytes) f(T{});
}

// Calls f with an element of the type, if it is real and has kBytes (0: any size). All threads take the same
// branch, because a launch has only one type.
template <int kBytes = 0, typename F>
__host__ __device__ __forceinline__ void VisitRealOfSize(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool:
      return VisitIfOfSize<kBytes, DeviceBool>(f);
    case DType::kU8:
      return VisitIfOfSize<kBytes, std::uint8_t>(f);
    case DType::kU16:
      return VisitIfOfSize<kBytes, std::uint16_t>(f);
    case DType::kU32:
      return VisitIfOfSize<kBytes, std::uint32_t>(f);
    case DType::kU64:
      return VisitIfOfSize<kBytes, std::uint64_t>(f);
    case DType::kI8:
      return VisitIfOfSize<kBytes, std::int8_t>(f);
    case DType::kI16:
      return VisitIfOfSize<kBytes, std::int16_t>(f);
    case DType::kI32:
      return VisitIfOfSize<kBytes, std::int32_t>(f);
    case DType::kI64:
      return VisitIfOfSize<kBytes, std::int64_t>(f);
    case DType::kF16:
      return VisitIfOfSize<kBytes, __half>(f);
    case DType::kBF16:
      return VisitIfOfSize<kBytes, __nv_bfloat16>(f);
    case DType::kF32:
      return VisitIfOfSize<kBytes, float>(f);
    case DType::kF64:
      return VisitIfOfSize<kBytes, double>(f);
    default:
      return;  // not real
  }
}

// Returns element `index`; 0 if the type is not real.
template <typename V>
__device__ V LoadReal(DType dtype, const void* data, std::int64_t index) {
  V value = 0;
  VisitRealOfSize(dtype, [&]<typename T>(T) { value = Widen<V>(static_cast<const T*>(data)[index]); });
  return value;
}

template <typename V>
__device__ void StoreReal(DType dtype, void* data, std::int64_t index, V value) {
  VisitRealOfSize(dtype, [&]<typename T>(T) { static_cast<T*>(data)[index] = Narrow<T>(value); });
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GPU_REAL_CUH_
