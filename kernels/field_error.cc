#include "kernels/field_error.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace warpline {
namespace {

// The distribution's Abseil has its own string_view type.
absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

absl::Status AboutField(absl::StatusCode code, std::string_view field, absl::string_view message) {
  absl::Status status(code, absl::StrCat(ToAbsl(field), ": ", message));
  status.SetPayload(ToAbsl(kFieldPayloadUrl), absl::Cord(ToAbsl(field)));
  return status;
}

}  // namespace

absl::Status FieldError(std::string_view field, std::string_view message) {
  return AboutField(absl::StatusCode::kInvalidArgument, field, ToAbsl(message));
}

absl::Status InField(std::string_view field, const absl::Status& status) {
  if (status.ok()) return status;
  absl::Status about = AboutField(status.code(), field, status.message());
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    if (url != ToAbsl(kFieldPayloadUrl)) about.SetPayload(url, payload);
  });
  return about;
}

absl::Status Within(std::string_view outer, const absl::Status& status, std::string_view about) {
  const std::optional<std::string> field = FieldOf(status);
  if (!field.has_value()) return status;
  const absl::string_view text = status.message();
  const absl::string_view rest = text.substr(std::min(text.size(), field->size() + 2));  // after "field: "
  return AboutField(status.code(), absl::StrCat(ToAbsl(outer), ".", *field),
                    absl::StrCat(ToAbsl(about), rest));
}

std::optional<std::string> FieldOf(const absl::Status& status) {
  const auto field = status.GetPayload(ToAbsl(kFieldPayloadUrl));
  if (!field.has_value()) return std::nullopt;
  return std::string(*field);
}

}  // namespace warpline
