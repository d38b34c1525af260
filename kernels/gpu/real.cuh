// The element types on the device; and elements whose type is known at run time only.
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

// An element as a number; exact where V has room for it.
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

// A number as an element, rounded once; V is float, double or a 64-bit integer. Floats become integers by
// SaturatingCast, integers narrower ones modulo 2^bits.
template <typename T, typename V>
__device__ T Narrow(V x) {
  constexpr bool kFloat = std::is_floating_point_v<V>;
  if constexpr (std::is_same_v<T, DeviceBool>) {
    return static_cast<DeviceBool>(x != 0 ? 1 : 0);
  } else if constexpr (std::is_same_v<T, __half>) {
    if constexpr (std::is_same_v<V, float>) return __float2half_rn(x);
    if constexpr (std::is_same_v<V, double>) return __double2half(x);
    if constexpr (!kFloat && std::is_signed_v<V>) return __ll2half_rn(x);
    if constexpr (!kFloat && !std::is_signed_v<V>) return __ull2half_rn(x);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    if constexpr (std::is_same_v<V, float>) return __float2bfloat16_rn(x);
    if constexpr (std::is_same_v<V, double>) return __double2bfloat16(x);
    if constexpr (!kFloat && std::is_signed_v<V>) return __ll2bfloat16_rn(x);
    if constexpr (!kFloat && !std::is_signed_v<V>) return __ull2bfloat16_rn(x);
  } else if constexpr (std::is_integral_v<T> && kFloat) {
    return SaturatingCast<T>(x);
  } else {
    return static_cast<T>(x);
  }
}

// Element `index`. (The same branch for all threads: the type is the launch's.)
template <typename V>
__device__ V LoadReal(DType dtype, const void* data, std::int64_t index) {
  const auto load = [&]<typename T>(T) { return Widen<V>(static_cast<const T*>(data)[index]); };
  switch (dtype) {
    case DType::kBool:
      return load(DeviceBool{});
    case DType::kU8:
      return load(std::uint8_t{});
    case DType::kU16:
      return load(std::uint16_t{});
    case DType::kU32:
      return load(std::uint32_t{});
    case DType::kU64:
      return load(std::uint64_t{});
    case DType::kI8:
      return load(std::int8_t{});
    case DType::kI16:
      return load(std::int16_t{});
    case DType::kI32:
      return load(std::int32_t{});
    case DType::kI64:
      return load(std::int64_t{});
    case DType::kF16:
      return load(__half{});
    case DType::kBF16:
      return load(__nv_bfloat16{});
    case DType::kF32:
      return load(float{});
    case DType::kF64:
      return load(double{});
    default:
      return V{0};  // not real
  }
}

template <typename V>
__device__ void StoreReal(DType dtype, void* data, std::int64_t index, V value) {
  const auto store = [&]<typename T>(T) { static_cast<T*>(data)[index] = Narrow<T>(value); };
  switch (dtype) {
    case DType::kBool:
      return store(DeviceBool{});
    case DType::kU8:
      return store(std::uint8_t{});
    case DType::kU16:
      return store(std::uint16_t{});
    case DType::kU32:
      return store(std::uint32_t{});
    case DType::kU64:
      return store(std::uint64_t{});
    case DType::kI8:
      return store(std::int8_t{});
    case DType::kI16:
      return store(std::int16_t{});
    case DType::kI32:
      return store(std::int32_t{});
    case DType::kI64:
      return store(std::int64_t{});
    case DType::kF16:
      return store(__half{});
    case DType::kBF16:
      return store(__nv_bfloat16{});
    case DType::kF32:
      return store(float{});
    case DType::kF64:
      return store(double{});
    default:
      return;  // not real
  }
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GPU_REAL_CUH_
