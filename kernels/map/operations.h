// The table of elementwise operations. The API's rules, both backends, the tests and the documentation all
// derive from it. To add an operation, add a line here, its function in functions.h, and its number in MapOp
// of warpline.proto.
#ifndef WARPLINE_KERNELS_MAP_OPERATIONS_H_
#define WARPLINE_KERNELS_MAP_OPERATIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/dtype.h"

namespace warpline {

// Sets of data types, as bits.
inline constexpr unsigned kBools = 1, kInts = 2, kFloats = 4, kComplex = 8;
// Only f32 and f64.
inline constexpr unsigned kWideFloats = 16;

// Returns whether the set has the type.
constexpr bool Has(unsigned set, DType dtype) {
  if (dtype == DType::kBool) return (set & kBools) != 0;
  if (IsInteger(dtype)) return (set & kInts) != 0;
  if (dtype == DType::kF32 || dtype == DType::kF64) return (set & (kFloats | kWideFloats)) != 0;
  if (IsFloat(dtype)) return (set & kFloats) != 0;
  if (dtype == DType::kC64 || dtype == DType::kC128) return (set & kComplex) != 0;
  return false;
}

// The data type of a result. For where, the operands are the second and third, because the first is bool.
enum class MapResult : std::uint8_t {
  kSame,   // the type of the operands
  kBool,   // bool
  kReal,   // the type of a part: f32 for c64, f64 for c128; otherwise the type of the operands
  kGiven,  // the node gives the type
};

// Which kernels support an operation. Maps with only light operations run on a kernel without function calls,
// which would cost registers. WeightOf tells it for a type.
enum class MapWeight : std::uint8_t { kLight, kHeavy };

// Columns: identifier, name, number of operands, supported types, type of the result, weight, and the error
// bound of f32 and f64 results in ulp. 0: the exact result, rounded once. Results of f16 and bf16 are those
// of f32, rounded. For complex results see kComplexUlp. The C library promises 4 for its vector functions
// (kernels/cpu/vector_math.h); the measured errors are up to 4.0.
//
// The order is that of the numbers in the API: add new operations at the end.
#define WARPLINE_MAP_OPERATIONS(X)                                                   \
  X(Constant, "constant", 0, kBools | kInts | kFloats | kComplex, kGiven, kLight, 0) \
  X(Cast, "cast", 1, kBools | kInts | kFloats | kComplex, kGiven, kLight, 0)         \
  X(Where, "where", 3, kBools | kInts | kFloats | kComplex, kSame, kLight, 0)        \
  X(Add, "add", 2, kBools | kInts | kFloats | kComplex, kSame, kLight, 0)            \
  X(Subtract, "subtract", 2, kInts | kFloats | kComplex, kSame, kLight, 0)           \
  X(Multiply, "multiply", 2, kBools | kInts | kFloats | kComplex, kSame, kLight, 0)  \
  X(Divide, "divide", 2, kFloats | kComplex, kSame, kLight, 0)                       \
  X(FloorDivide, "floor_divide", 2, kInts | kFloats, kSame, kHeavy, 2)               \
  X(Remainder, "remainder", 2, kInts | kFloats, kSame, kHeavy, 0)                    \
  X(Pow, "pow", 2, kInts | kFloats | kComplex, kSame, kHeavy, 4)                     \
  X(Negative, "negative", 1, kInts | kFloats | kComplex, kSame, kLight, 0)           \
  X(Abs, "abs", 1, kInts | kFloats | kComplex, kReal, kLight, 0)                     \
  X(Sign, "sign", 1, kInts | kFloats | kComplex, kSame, kLight, 0)                   \
  X(Minimum, "minimum", 2, kBools | kInts | kFloats, kSame, kLight, 0)               \
  X(Maximum, "maximum", 2, kBools | kInts | kFloats, kSame, kLight, 0)               \
  X(Clip, "clip", 3, kInts | kFloats, kSame, kLight, 0)                              \
  X(Equal, "equal", 2, kBools | kInts | kFloats | kComplex, kBool, kLight, 0)        \
  X(NotEqual, "not_equal", 2, kBools | kInts | kFloats | kComplex, kBool, kLight, 0) \
  X(Less, "less", 2, kBools | kInts | kFloats, kBool, kLight, 0)                     \
  X(LessEqual, "less_equal", 2, kBools | kInts | kFloats, kBool, kLight, 0)          \
  X(Greater, "greater", 2, kBools | kInts | kFloats, kBool, kLight, 0)               \
  X(GreaterEqual, "greater_equal", 2, kBools | kInts | kFloats, kBool, kLight, 0)    \
  X(LogicalAnd, "logical_and", 2, kBools, kSame, kLight, 0)                          \
  X(LogicalOr, "logical_or", 2, kBools, kSame, kLight, 0)                            \
  X(LogicalXor, "logical_xor", 2, kBools, kSame, kLight, 0)                          \
  X(LogicalNot, "logical_not", 1, kBools, kSame, kLight, 0)                          \
  X(BitwiseAnd, "bitwise_and", 2, kBools | kInts, kSame, kLight, 0)                  \
  X(BitwiseOr, "bitwise_or", 2, kBools | kInts, kSame, kLight, 0)                    \
  X(BitwiseXor, "bitwise_xor", 2, kBools | kInts, kSame, kLight, 0)                  \
  X(BitwiseInvert, "bitwise_invert", 1, kBools | kInts, kSame, kLight, 0)            \
  X(BitwiseLeftShift, "bitwise_left_shift", 2, kInts, kSame, kLight, 0)              \
  X(BitwiseRightShift, "bitwise_right_shift", 2, kInts, kSame, kLight, 0)            \
  X(Floor, "floor", 1, kFloats, kSame, kLight, 0)                                    \
  X(Ceil, "ceil", 1, kFloats, kSame, kLight, 0)                                      \
  X(Trunc, "trunc", 1, kFloats, kSame, kLight, 0)                                    \
  X(Round, "round", 1, kFloats | kComplex, kSame, kLight, 0)                         \
  X(Sqrt, "sqrt", 1, kFloats | kComplex, kSame, kLight, 0)                           \
  X(IsNan, "isnan", 1, kFloats | kComplex, kBool, kLight, 0)                         \
  X(IsInf, "isinf", 1, kFloats | kComplex, kBool, kLight, 0)                         \
  X(IsFinite, "isfinite", 1, kFloats | kComplex, kBool, kLight, 0)                   \
  X(SignBit, "signbit", 1, kFloats, kBool, kLight, 0)                                \
  X(CopySign, "copysign", 2, kFloats, kSame, kLight, 0)                              \
  X(NextAfter, "nextafter", 2, kWideFloats, kSame, kHeavy, 0)                        \
  X(Real, "real", 1, kComplex, kReal, kLight, 0)                                     \
  X(Imag, "imag", 1, kComplex, kReal, kLight, 0)                                     \
  X(Conj, "conj", 1, kComplex, kSame, kLight, 0)                                     \
  X(Exp, "exp", 1, kFloats | kComplex, kSame, kLight, 4)                             \
  X(Exp2, "exp2", 1, kFloats, kSame, kHeavy, 4)                                      \
  X(Expm1, "expm1", 1, kFloats | kComplex, kSame, kHeavy, 4)                         \
  X(Log, "log", 1, kFloats | kComplex, kSame, kLight, 2)                             \
  X(Log2, "log2", 1, kFloats | kComplex, kSame, kHeavy, 4)                           \
  X(Log10, "log10", 1, kFloats | kComplex, kSame, kHeavy, 3)                         \
  X(Log1p, "log1p", 1, kFloats | kComplex, kSame, kHeavy, 4)                         \
  X(LogAddExp, "logaddexp", 2, kFloats, kSame, kHeavy, 8)                            \
  X(Hypot, "hypot", 2, kFloats, kSame, kHeavy, 3)                                    \
  X(Sin, "sin", 1, kFloats | kComplex, kSame, kHeavy, 2)                             \
  X(Cos, "cos", 1, kFloats | kComplex, kSame, kHeavy, 2)                             \
  X(Tan, "tan", 1, kFloats | kComplex, kSame, kHeavy, 4)                             \
  X(Asin, "asin", 1, kFloats | kComplex, kSame, kHeavy, 4)                           \
  X(Acos, "acos", 1, kFloats | kComplex, kSame, kHeavy, 3)                           \
  X(Atan, "atan", 1, kFloats | kComplex, kSame, kHeavy, 2)                           \
  X(Atan2, "atan2", 2, kFloats, kSame, kHeavy, 3)                                    \
  X(Sinh, "sinh", 1, kFloats | kComplex, kSame, kHeavy, 3)                           \
  X(Cosh, "cosh", 1, kFloats | kComplex, kSame, kHeavy, 2)                           \
  X(Tanh, "tanh", 1, kFloats | kComplex, kSame, kLight, 4)                           \
  X(Asinh, "asinh", 1, kFloats | kComplex, kSame, kHeavy, 4)                         \
  X(Acosh, "acosh", 1, kFloats | kComplex, kSame, kHeavy, 4)                         \
  X(Atanh, "atanh", 1, kFloats | kComplex, kSame, kHeavy, 4)                         \
  X(Erf, "erf", 1, kFloats, kSame, kHeavy, 4)                                        \
  X(Cbrt, "cbrt", 1, kFloats, kSame, kHeavy, 4)                                      \
  X(Index, "index", 0, kInts, kGiven, kLight, 0)

// The error bound of complex quotients and of results of heavy operations: of each part, in units in the last
// place of the larger part. For pow, times 1 + |y log(x)|.
inline constexpr int kComplexUlp = 8;

enum class MapOp : std::uint8_t {
#define WARPLINE_ENUMERATE(identifier, ...) k##identifier,
  WARPLINE_MAP_OPERATIONS(WARPLINE_ENUMERATE)
#undef WARPLINE_ENUMERATE
};

struct MapOpRow {
  std::string_view name;
  int operands = 0;
  unsigned takes = 0;
  MapResult result = MapResult::kSame;
  MapWeight weight = MapWeight::kLight;
  int max_ulp = 0;
};

// Indexed by the value of MapOp.
inline constexpr std::array kMapOps = {
#define WARPLINE_ROW(identifier, name, operands, takes, result, weight, max_ulp) \
  MapOpRow{name, operands, takes, MapResult::result, MapWeight::weight, max_ulp},
    WARPLINE_MAP_OPERATIONS(WARPLINE_ROW)
#undef WARPLINE_ROW
};

constexpr const MapOpRow& RowOf(MapOp op) { return kMapOps[static_cast<std::size_t>(op)]; }
// Returns the weight for operands of a type. What a library computes of f64 and of complex numbers is heavy.
constexpr MapWeight WeightOf(MapOp op, DType dtype) {
  const bool of_library =
      RowOf(op).max_ulp > 0 || (IsComplex(dtype) && (op == MapOp::kSqrt || op == MapOp::kSign));
  return of_library && (IsComplex(dtype) || dtype == DType::kF64) ? MapWeight::kHeavy : RowOf(op).weight;
}
constexpr std::string_view Name(MapOp op) { return RowOf(op).name; }

// Returns the type of the result for operands of `dtype`. Not for kGiven, where the node gives the type.
constexpr DType ResultOf(MapOp op, DType dtype) {
  switch (RowOf(op).result) {
    case MapResult::kBool:
      return DType::kBool;
    case MapResult::kReal:
      return PartOf(dtype);
    default:
      return dtype;
  }
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_MAP_OPERATIONS_H_
