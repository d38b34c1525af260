// The element types: the single list from which every table derives.
#ifndef WARPLINE_KERNELS_DTYPE_H_
#define WARPLINE_KERNELS_DTYPE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace warpline {

enum class DType : std::uint8_t { kI32, kI64, kF16, kBF16, kF32, kF64 };

inline constexpr std::array kAllDTypes = {DType::kI32,  DType::kI64, DType::kF16,
                                          DType::kBF16, DType::kF32, DType::kF64};

// Bytes of one element.
constexpr std::size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kI32:
    case DType::kF32:
      return 4;
    case DType::kI64:
    case DType::kF64:
      return 8;
  }
  return 0;
}

constexpr std::string_view Name(DType dtype) {
  switch (dtype) {
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
  }
  return "?";
}

constexpr bool IsFloat(DType dtype) { return dtype != DType::kI32 && dtype != DType::kI64; }

}  // namespace warpline

#endif  // WARPLINE_KERNELS_DTYPE_H_
