// Errors about a field of a request. A payload of the absl::Status contains the field. So the transport can
// make typed error details, and lower layers need not know gRPC or protobuf.
#ifndef WARPLINE_KERNELS_FIELD_ERROR_H_
#define WARPLINE_KERNELS_FIELD_ERROR_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace warpline {

// The URL of the payload. The payload is the field's path in the request ("a.row_stride").
inline constexpr std::string_view kFieldPayloadUrl = "warpline/field";

// Returns INVALID_ARGUMENT "<field>: <message>". The message must give the value and the limit.
absl::Status FieldError(std::string_view field, std::string_view message);

// Returns an error "<field>: <message>" with the code and the other payloads of `status`. OK stays OK.
absl::Status InField(std::string_view field, const absl::Status& status);

// Converts an error about a field to one about the same field inside `outer`: "<outer>.<field>:
// <about><message>". The code does not change. A status without a field is returned unchanged.
absl::Status Within(std::string_view outer, const absl::Status& status, std::string_view about = {});

// Returns the field that the functions above attached, or nothing.
std::optional<std::string> FieldOf(const absl::Status& status);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_FIELD_ERROR_H_
