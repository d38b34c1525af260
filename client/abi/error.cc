#include "client/abi/error.h"

namespace warpline::abi {

warpline_error* ToError(const absl::Status& status) {
  if (status.ok()) return nullptr;
  return new warpline_error{status.code(), std::string(status.message()), client::DetailsOf(status)};
}

}  // namespace warpline::abi

int32_t warpline_error_code(const warpline_error* error) {
  return error == nullptr ? WARPLINE_OK : static_cast<int32_t>(error->code);
}

const char* warpline_error_message(const warpline_error* error) { return error->message.c_str(); }

const char* warpline_error_request_id(const warpline_error* error) {
  return error->details.request_id.c_str();
}

int32_t warpline_error_answered(const warpline_error* error) { return error->details.answered ? 1 : 0; }

int32_t warpline_error_attempts(const warpline_error* error) { return error->details.attempts; }

double warpline_error_retry_seconds(const warpline_error* error) {
  const auto& delay = error->details.retry_delay;
  return delay.has_value() ? absl::ToDoubleSeconds(*delay) : -1;
}

size_t warpline_error_violation_count(const warpline_error* error) {
  return error->details.violations.size();
}

const char* warpline_error_violation_field(const warpline_error* error, size_t index) {
  return error->details.violations[index].field.c_str();
}

const char* warpline_error_violation_text(const warpline_error* error, size_t index) {
  return error->details.violations[index].description.c_str();
}

void warpline_error_free(warpline_error* error) { delete error; }
