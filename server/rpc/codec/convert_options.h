// The options of an operation, from its request or from a step: the two have the same fields. Scalars are
// tokens in them, as the scanner leaves them.
#ifndef WARPLINE_SERVER_RPC_CODEC_CONVERT_OPTIONS_H_
#define WARPLINE_SERVER_RPC_CODEC_CONVERT_OPTIONS_H_

#include <cstddef>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "proto/wire/scanner.h"
#include "server/rpc/codec/convert_step.h"

namespace warpline {

template <typename Proto>
TransposeOptions TransposeOptionsOf(const Proto& proto) {
  return {{proto.perm().begin(), proto.perm().end()}};
}

// The scalar for which a header has this token. `values` are those of the message.
inline absl::StatusOr<Scalar> ScalarOf(const char* field, double token, std::span<const double> values) {
  const std::optional<std::size_t> index = ScalarIndex(token);
  if (index.has_value() && *index < values.size()) return Scalar{values[*index], {.index = *index}};
  return absl::InternalError(absl::StrCat(field, ": the header does not come from a scan"));
}

template <typename Proto>
absl::StatusOr<GemmOptions> GemmOptionsOf(const Proto& proto, std::span<const double> scalars) {
  GemmOptions options{.trans_a = proto.trans_a(),
                      .trans_b = proto.trans_b(),
                      .precision = proto.precision(),
                      .activation = proto.activation(),
                      .out_data_type = proto.out_data_type()};
  if (proto.has_alpha()) {
    ASSIGN_OR_RETURN(options.alpha, ScalarOf("alpha", proto.alpha(), scalars));
  }
  if (proto.has_beta()) {
    ASSIGN_OR_RETURN(options.beta, ScalarOf("beta", proto.beta(), scalars));
  }
  return options;
}

inline absl::StatusOr<Scalar> FactorOf(const v1::ScaleStep& proto, std::span<const double> scalars) {
  if (proto.factor() == 0) return Absent(0);
  return ScalarOf("factor", proto.factor(), scalars);
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
