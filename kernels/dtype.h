// The element types. All other tables derive from this one list.
#ifndef WARPLINE_KERNELS_DTYPE_H_
#define WARPLINE_KERNELS_DTYPE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace warpline {

enum class DType : std::uint8_t {
  kBool,
  kU8,
  kU16,
  kU32,
  kU64,
  kI8,
  kI16,
  kI32,
  kI64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kF8E4M3,
  kF8E5M2
};

namespace internal {

enum class Kind : std::uint8_t { kBool, kUnsigned, kSigned, kFloat, kComplex, kFloat8 };

struct DTypeRow {
  std::string_view name;
  std::size_t bytes;
  Kind kind;
};

// Indexed by the value of DType.
inline constexpr std::array kDTypes = {
    DTypeRow{"bool", 1, Kind::kBool},     DTypeRow{"u8", 1, Kind::kUnsigned},
    DTypeRow{"u16", 2, Kind::kUnsigned},  DTypeRow{"u32", 4, Kind::kUnsigned},
    DTypeRow{"u64", 8, Kind::kUnsigned},  DTypeRow{"i8", 1, Kind::kSigned},
    DTypeRow{"i16", 2, Kind::kSigned},    DTypeRow{"i32", 4, Kind::kSigned},
    DTypeRow{"i64", 8, Kind::kSigned},    DTypeRow{"f16", 2, Kind::kFloat},
    DTypeRow{"bf16", 2, Kind::kFloat},    DTypeRow{"f32", 4, Kind::kFloat},
    DTypeRow{"f64", 8, Kind::kFloat},     DTypeRow{"c64", 8, Kind::kComplex},
    DTypeRow{"c128", 16, Kind::kComplex}, DTypeRow{"f8e4m3", 1, Kind::kFloat8},
    DTypeRow{"f8e5m2", 1, Kind::kFloat8},
};

constexpr const DTypeRow& RowOf(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

}  // namespace internal

inline constexpr std::array kAllDTypes = {
    DType::kBool, DType::kU8,  DType::kU16,  DType::kU32,    DType::kU64,   DType::kI8,
    DType::kI16,  DType::kI32, DType::kI64,  DType::kF16,    DType::kBF16,  DType::kF32,
    DType::kF64,  DType::kC64, DType::kC128, DType::kF8E4M3, DType::kF8E5M2};
static_assert(kAllDTypes.size() == internal::kDTypes.size());

// Returns the size of one element in bytes.
constexpr std::size_t SizeOf(DType dtype) { return internal::RowOf(dtype).bytes; }

// Returns the name, such as "f32".
constexpr std::string_view Name(DType dtype) { return internal::RowOf(dtype).name; }

// True for the real floating-point types that kernels compute in. This excludes f8.
constexpr bool IsFloat(DType dtype) { return internal::RowOf(dtype).kind == internal::Kind::kFloat; }
constexpr bool IsUnsigned(DType dtype) { return internal::RowOf(dtype).kind == internal::Kind::kUnsigned; }
constexpr bool IsSigned(DType dtype) { return internal::RowOf(dtype).kind == internal::Kind::kSigned; }
// True for integer types, without bool.
constexpr bool IsInteger(DType dtype) { return IsUnsigned(dtype) || IsSigned(dtype); }
// True for the types of reductions, casts and elementwise operations: bool, integers, floats.
constexpr bool IsReal(DType dtype) { return dtype == DType::kBool || IsInteger(dtype) || IsFloat(dtype); }

constexpr bool IsComplex(DType dtype) { return internal::RowOf(dtype).kind == internal::Kind::kComplex; }

// Returns the type of the real and imaginary parts of a complex type. Other types are returned unchanged.
constexpr DType PartOf(DType dtype) {
  if (dtype == DType::kC64) return DType::kF32;
  return dtype == DType::kC128 ? DType::kF64 : dtype;
}

// True for the types of maps: real and complex numbers.
constexpr bool IsMapType(DType dtype) { return IsReal(dtype) || IsComplex(dtype); }

// True for the types that matrix products support.
constexpr bool IsGemmInput(DType dtype) { return IsInteger(dtype) || IsFloat(dtype) || IsComplex(dtype); }

}  // namespace warpline

#endif  // WARPLINE_KERNELS_DTYPE_H_
