#include "kernels/map/pair.h"

namespace warpline {

MapProblem ToMap(const PairMap& pair) {
  MapProblem map{.dtype = pair.dtype, .shape = pair.shape, .inputs = {{pair.dtype, pair.x_strides}}};
  switch (pair.op) {
    case PairOp::kCast:
      map.nodes = {{MapOp::kCast, pair.out_dtype, {0}}};
      break;
    case PairOp::kScale:
      if (IsFloat(pair.dtype) && SizeOf(pair.dtype) == 2) {
        map.nodes = {{MapOp::kConstant, DType::kF32, {0}},
                     {MapOp::kCast, DType::kF32, {0}},
                     {MapOp::kMultiply, DType::kF32, {2, 1}},
                     {MapOp::kCast, pair.dtype, {3}}};
      } else {
        map.nodes = {{MapOp::kConstant, pair.dtype, {0}}, {MapOp::kMultiply, pair.dtype, {0, 1}}};
      }
      break;
    case PairOp::kAdd:
      map.inputs.push_back({pair.dtype, pair.y_strides});
      map.nodes = {{MapOp::kAdd, pair.dtype, {0, 1}}};
      break;
  }
  return map;
}

std::optional<PairMap> PairOf(const MapProblem& map) {
  if (map.inputs.empty() || map.inputs.size() > 2 || map.nodes.size() > 4) return std::nullopt;
  PairMap pair{.dtype = map.dtype,
               .out_dtype = map.OutDType(),
               .shape = map.shape,
               .x_strides = map.inputs[0].strides};
  if (map.inputs.size() == 2) {
    pair.op = PairOp::kAdd;
    pair.y_strides = map.inputs[1].strides;
  } else if (map.nodes.size() > 1) {
    pair.op = PairOp::kScale;
  }
  if (ToMap(pair) != map) return std::nullopt;
  return pair;
}

}  // namespace warpline
