// A map in the form that kernels run: instructions on slots. Each slot holds one live value for every element
// that is being computed. Pure host code.
#ifndef WARPLINE_KERNELS_MAP_CODE_H_
#define WARPLINE_KERNELS_MAP_CODE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/map/operations.h"
#include "kernels/problem.h"

namespace warpline {

// The number types in which values are stored and computed. Narrower elements are widened: bool, u8 and u16
// to kU32, i8 and i16 to kI32, f16 and bf16 to kF32.
enum class NumberType : std::uint8_t { kI32, kU32, kF32, kI64, kU64, kF64, kC64, kC128 };
inline constexpr int kNumberTypes = 8;

constexpr NumberType NumberTypeOf(DType dtype) {
  if (dtype == DType::kC64) return NumberType::kC64;
  if (dtype == DType::kC128) return NumberType::kC128;
  if (IsFloat(dtype)) return dtype == DType::kF64 ? NumberType::kF64 : NumberType::kF32;
  const bool wide = SizeOf(dtype) == 8;
  if (IsSigned(dtype)) return wide ? NumberType::kI64 : NumberType::kI32;
  return wide ? NumberType::kU64 : NumberType::kU32;
}

// Returns the data type with all numbers of a number type.
constexpr DType TypeOf(NumberType type) {
  constexpr DType kTypes[] = {DType::kI32, DType::kU32, DType::kF32, DType::kI64,
                              DType::kU64, DType::kF64, DType::kC64, DType::kC128};
  return kTypes[static_cast<int>(type)];
}

constexpr int BytesOf(NumberType type) { return static_cast<int>(SizeOf(TypeOf(type))); }

// True for operations whose integer results have the same bits for signed and unsigned operands.
constexpr bool IgnoresSign(MapOp op) {
  switch (op) {
    case MapOp::kAdd:
    case MapOp::kSubtract:
    case MapOp::kMultiply:
    case MapOp::kNegative:
    case MapOp::kEqual:
    case MapOp::kNotEqual:
    case MapOp::kBitwiseAnd:
    case MapOp::kBitwiseOr:
    case MapOp::kBitwiseXor:
    case MapOp::kBitwiseInvert:
    case MapOp::kBitwiseLeftShift:
      return true;
    default:
      return false;
  }
}

// Returns the code of an operation on operands of one number type.
constexpr std::uint16_t CodeOf(MapOp op, NumberType type) {
  return static_cast<std::uint16_t>(static_cast<int>(op) * kNumberTypes + static_cast<int>(type));
}
// The code of a load. Operand 0 is the index of the input.
inline constexpr std::uint16_t kLoadCode = static_cast<std::uint16_t>(kMapOps.size() * kNumberTypes);
// The code that produces the positions of elements along an axis. Operand 0 is the row of MapWalk::strides.
inline constexpr std::uint16_t kIndexCode = kLoadCode + 1;

// Returns whether instructions apply the scalar function of `op` to numbers of the type. Constants, indices,
// casts and where have no such function.
constexpr bool HasFunction(MapOp op, NumberType type) {
  if (RowOf(op).operands == 0 || op == MapOp::kCast || op == MapOp::kWhere) return false;
  if (IgnoresSign(op) && (type == NumberType::kI32 || type == NumberType::kI64)) return false;
  if (RowOf(op).takes == kBools) return type == NumberType::kU32;
  return Has(RowOf(op).takes, TypeOf(type));
}

// The place of a value: a slot; with kUniformBit, an index into MapCode::uniforms; or kLastResult.
inline constexpr std::uint16_t kUniformBit = 0x8000;
// The result of the previous instruction. It needs no slot if only the next instruction reads it.
inline constexpr std::uint16_t kLastResult = 0x7fff;

struct MapInstruction {
  std::uint16_t code = 0;
  std::uint16_t to = 0;        // a slot
  std::uint16_t from[3] = {};  // places; for a load or an index, a number. The third is never kLastResult.
  DType dtype = DType::kF32;   // of the result; for a load, of the input
  // 1: the result is narrower than a number of its type, and must be rounded. Loads and casts round by
  // themselves.
  std::uint8_t rounds = 0;
};

// A value that is the same for all elements: a constant, or an input that is broadcast along every axis.
struct MapUniform {
  DType dtype = DType::kF32;
  bool is_input = false;
  std::uint16_t index = 0;  // index of the input, or of the constant among the scalars of the step
};

struct MapCode {
  std::vector<MapInstruction> instructions;  // may be empty, if the results are uniforms
  std::vector<MapUniform> uniforms;
  std::vector<std::uint16_t> results;  // the places of the results, by number
  int slots = 0;
  int slot_bytes = 4;  // for one value: 4, 8 or 16
  MapWeight weight = MapWeight::kLight;
};

// Every value has a slot from the instruction that computes it to its last reader, unless the next
// instruction is its only reader. Results keep their slots to the end. Casts to the same type are left out.
// If an instruction is the last reader of an operand, it may write to that operand's slot, if both have
// numbers of the same size.
MapCode Lower(const MapProblem& problem);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_MAP_CODE_H_
