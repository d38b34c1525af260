// Maps of one operation: casts, products with a number, and sums of two arrays. Requests and benchmarks have
// short forms for them, and GPUs a special kernel (kernels/map/packs).
#ifndef WARPLINE_KERNELS_MAP_PAIR_H_
#define WARPLINE_KERNELS_MAP_PAIR_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/problem.h"

namespace warpline {

enum class PairOp : std::uint8_t { kCast, kScale, kAdd };
inline constexpr std::array kAllPairOps = {PairOp::kCast, PairOp::kScale, PairOp::kAdd};
constexpr std::string_view Name(PairOp op) {
  return op == PairOp::kCast ? "cast" : op == PairOp::kScale ? "scale" : "add";
}
// Returns true if the operation has a second operand, y.
constexpr bool ReadsY(PairOp op) { return op == PairOp::kAdd; }

// out = cast(x), factor * x, or x + y. The result is dense and of out_dtype, which equals `dtype` except for
// casts. x_strides and y_strides are the strides along each axis of the result in elements; 0 if x or y is
// broadcast. Products of f16 and bf16 are computed in f32 and rounded once. The factor is the constant of the
// map.
struct PairMap {
  PairOp op = PairOp::kCast;
  DType dtype = DType::kF32;
  DType out_dtype = DType::kF32;
  Shape shape;
  Strides x_strides{}, y_strides{};

  friend bool operator==(const PairMap&, const PairMap&) = default;
};

MapProblem ToMap(const PairMap& pair);
// Returns the pair that makes exactly this map; nothing if there is none.
std::optional<PairMap> PairOf(const MapProblem& map);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_MAP_PAIR_H_
