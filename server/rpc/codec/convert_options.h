// The scalars of a scanned message: tokens in its header, as the scanner leaves them.
#ifndef WARPLINE_SERVER_RPC_CODEC_CONVERT_OPTIONS_H_
#define WARPLINE_SERVER_RPC_CODEC_CONVERT_OPTIONS_H_

#include <cstddef>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/rules/convert_step.h"
#include "proto/wire/scanner.h"
#include "server/plan/plan.h"

namespace warpline {

// Returns the scalar for this token of a header. `values` are the scalars of the message.
inline absl::StatusOr<Scalar> ScalarOf(const char* field, double token, std::span<const double> values) {
  const std::optional<std::size_t> index = ScalarIndex(token);
  if (index.has_value() && *index < values.size()) return Scalar{values[*index], *index};
  return absl::InternalError(absl::StrCat(field, ": the header does not come from a scan"));
}

// The ScalarReader (convert_step.h) of a header.
struct TokenReader {
  std::span<const double> values;

  absl::StatusOr<Scalar> operator()(const char* field, double token) const {
    return ScalarOf(field, token, values);
  }
};

// Returns where a request with the same plan has the value of this scalar.
inline PlannedScalar Planned(const Scalar& scalar) {
  if (scalar.number.has_value()) return {.index = *scalar.number};
  return {.otherwise = scalar.value};
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_CONVERT_OPTIONS_H_
