// The options of an operation, from its request or from a step: the two have the same fields.
#ifndef WARPLINE_SERVER_RPC_CODEC_CONVERT_OPTIONS_H_
#define WARPLINE_SERVER_RPC_CODEC_CONVERT_OPTIONS_H_

#include "server/rpc/codec/convert_step.h"

namespace warpline {

template <typename Proto>
TransposeOptions TransposeOptionsOf(const Proto& proto) {
  return {{proto.perm().begin(), proto.perm().end()}};
}

template <typename Proto>
GemmOptions GemmOptionsOf(const Proto& proto) {
  return {.trans_a = proto.trans_a(),
          .trans_b = proto.trans_b(),
          .alpha = proto.has_alpha() ? proto.alpha() : 1,
          .beta = proto.has_beta() ? proto.beta() : 0,
          .precision = proto.precision(),
          .activation = proto.activation(),
          .out_data_type = proto.out_data_type()};
}

template <typename Proto>
ReduceOptions ReduceOptionsOf(const Proto& proto) {
  return {.op = proto.op(),
          .axes = {proto.axes().begin(), proto.axes().end()},
          .keepdims = proto.keepdims(),
          .out_data_type = proto.out_data_type(),
          .ddof = proto.ddof()};
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_CONVERT_OPTIONS_H_
