// Errors about a field of a request: a payload of the absl::Status has the field, so that the transport can
// put it into typed error details without anything below it knowing of gRPC or protobuf.
#ifndef WARPLINE_KERNELS_FIELD_ERROR_H_
#define WARPLINE_KERNELS_FIELD_ERROR_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace warpline {

// The URL of the payload, which is the field's path in the request ("a.row_stride").
inline constexpr std::string_view kFieldPayloadUrl = "warpline/field";

// INVALID_ARGUMENT "<field>: <message>"; the message gives the value and the limit.
absl::Status FieldError(std::string_view field, std::string_view message);

// An error about a field whose code and other payloads are those of `status`: "<field>: <message>". OK stays
// OK.
absl::Status InField(std::string_view field, const absl::Status& status);

// An error about a field inside of `outer`, from one that names the inner field alone: "<outer>.<field>:
// <about><message>". The code stays. A status without a field stays as it is.
absl::Status Within(std::string_view outer, const absl::Status& status, std::string_view about = {});

// Returns the field that the functions above attached, or nothing.
std::optional<std::string> FieldOf(const absl::Status& status);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_FIELD_ERROR_H_
