#include "server/base/errors.h"

#include <algorithm>
#include <cstdint>
#include <random>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace warpline {
namespace {

// The distribution's Abseil has a string_view of its own.
absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

std::optional<std::string> PayloadOf(const absl::Status& status, std::string_view url) {
  const auto payload = status.GetPayload(ToAbsl(url));
  if (!payload.has_value()) return std::nullopt;
  return std::string(*payload);
}

absl::Status AboutField(absl::StatusCode code, std::string_view field, std::string_view message) {
  absl::Status status(code, absl::StrCat(ToAbsl(field), ": ", ToAbsl(message)));
  status.SetPayload(ToAbsl(kFieldPayloadUrl), absl::Cord(ToAbsl(field)));
  return status;
}

}  // namespace

absl::Status FieldError(std::string_view field, std::string_view message) {
  return AboutField(absl::StatusCode::kInvalidArgument, field, message);
}

absl::Status InField(std::string_view field, const absl::Status& status) {
  if (status.ok()) return status;
  const absl::string_view message = status.message();
  absl::Status about = AboutField(status.code(), field, {message.data(), message.size()});
  const std::optional<absl::Duration> delay = RetryAfterOf(status);
  return delay.has_value() ? WithRetryAfter(std::move(about), *delay) : about;
}

absl::Status WithRetryAfter(absl::Status status, absl::Duration delay) {
  const std::int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(delay, absl::Milliseconds(1)));
  status.SetPayload(ToAbsl(kRetryPayloadUrl), absl::Cord(absl::StrCat(std::max<std::int64_t>(ms, 0))));
  return status;
}

absl::Duration Spread(absl::Duration delay) {
  thread_local std::minstd_rand random(std::random_device{}());
  return delay * std::uniform_real_distribution<double>(1, 2)(random);
}

absl::Status WithSpreadRetryAfter(const absl::Status& status) {
  const std::optional<absl::Duration> delay = RetryAfterOf(status);
  return delay.has_value() ? WithRetryAfter(status, Spread(*delay)) : status;
}

std::optional<std::string> FieldOf(const absl::Status& status) { return PayloadOf(status, kFieldPayloadUrl); }

std::optional<absl::Duration> RetryAfterOf(const absl::Status& status) {
  const std::optional<std::string> text = PayloadOf(status, kRetryPayloadUrl);
  std::int64_t ms = 0;
  if (!text.has_value() || !absl::SimpleAtoi(*text, &ms)) return std::nullopt;
  return absl::Milliseconds(ms);
}

}  // namespace warpline
