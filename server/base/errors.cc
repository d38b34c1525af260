#include "server/base/errors.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace warpline {
namespace {

// In the distribution's Abseil, absl::string_view is not std::string_view.
absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

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

std::optional<absl::Duration> RetryAfterOf(const absl::Status& status) {
  const auto text = status.GetPayload(ToAbsl(kRetryPayloadUrl));
  std::int64_t ms = 0;
  if (!text.has_value() || !absl::SimpleAtoi(std::string(*text), &ms)) return std::nullopt;
  return absl::Milliseconds(ms);
}

}  // namespace warpline
