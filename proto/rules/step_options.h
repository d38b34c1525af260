// Reads the options of an operation from its step.
#ifndef WARPLINE_PROTO_RULES_STEP_OPTIONS_H_
#define WARPLINE_PROTO_RULES_STEP_OPTIONS_H_

#include "absl/status/statusor.h"
#include "kernels/status_macros.h"
#include "proto/rules/convert_step.h"

namespace warpline {

inline TransposeOptions TransposeOptionsOf(const v1::TransposeStep& proto) {
  return {{proto.perm().begin(), proto.perm().end()}};
}

// Reads a scalar from a message that contains the value itself.
inline absl::StatusOr<Scalar> ReadValue(const char*, double given) { return Scalar{given, {}}; }

inline absl::StatusOr<GemmOptions> GemmOptionsOf(const v1::GemmStep& proto, ScalarReader read) {
  GemmOptions options{.trans_a = proto.trans_a(),
                      .trans_b = proto.trans_b(),
                      .precision = proto.precision(),
                      .activation = proto.activation(),
                      .out_data_type = proto.out_data_type()};
  if (proto.has_alpha()) {
    ASSIGN_OR_RETURN(options.alpha, read("alpha", proto.alpha()));
  }
  if (proto.has_beta()) {
    ASSIGN_OR_RETURN(options.beta, read("beta", proto.beta()));
  }
  return options;
}

inline absl::StatusOr<Scalar> FactorOf(const v1::ScaleStep& proto, ScalarReader read) {
  if (proto.factor() == 0) return Scalar{};
  return read("factor", proto.factor());
}

inline ReduceOptions ReduceOptionsOf(const v1::ReduceStep& proto) {
  return {.op = proto.op(),
          .axes = {proto.axes().begin(), proto.axes().end()},
          .keepdims = proto.keepdims(),
          .out_data_type = proto.out_data_type(),
          .ddof = proto.ddof()};
}

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_STEP_OPTIONS_H_
