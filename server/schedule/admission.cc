#include "server/schedule/admission.h"

#include "absl/strings/str_cat.h"
#include "server/base/errors.h"
#include "server/observe/nvtx.h"

namespace warpline {

Ticket& Ticket::operator=(Ticket&& other) noexcept {
  if (this == &other) return *this;
  Return();
  admission_ = std::exchange(other.admission_, nullptr);
  bytes_ = other.bytes_;
  return *this;
}

void Ticket::Return() {
  if (admission_ != nullptr) std::exchange(admission_, nullptr)->Return(bytes_);
}

Admission::Admission(Options options, Metrics& metrics) : options_(options), metrics_(metrics) {
  metrics_.admission_bytes_limit.Set(static_cast<double>(options_.max_bytes));
}

absl::Status Admission::CheckFits(std::int64_t bytes) const {
  if (bytes <= options_.max_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the request and its result have ", bytes, " bytes together, limit ", options_.max_bytes));
}

absl::StatusOr<Ticket> Admission::Admit(std::int64_t bytes) {
  const nvtx::Range range(nvtx::Name::kAdmission);
  MutexLock lock(&mutex_);
  if (draining_) {
    metrics_.CountRejection("draining");
    return absl::UnavailableError("the server is draining");
  }
  if (jobs_ >= options_.max_jobs) {
    metrics_.CountRejection("jobs");
    return WithRetryAfter(absl::ResourceExhaustedError(absl::StrCat(
                              "the server is full: ", jobs_, " jobs admitted, limit ", options_.max_jobs)),
                          options_.retry_after);
  }
  if (bytes_ + bytes > options_.max_bytes) {
    metrics_.CountRejection("bytes");
    return WithRetryAfter(
        absl::ResourceExhaustedError(absl::StrCat("the server is full: ", bytes_, " bytes admitted, ", bytes,
                                                  " more asked for, limit ", options_.max_bytes)),
        options_.retry_after);
  }
  ++jobs_;
  bytes_ += bytes;
  metrics_.admission_bytes_used.Set(static_cast<double>(bytes_));
  return Ticket(this, bytes);
}

void Admission::Drain() {
  MutexLock lock(&mutex_);
  draining_ = true;
}

bool Admission::AwaitIdle(absl::Time deadline) {
  MutexLock lock(&mutex_);
  return mutex_.AwaitUntil([this] { return jobs_ == 0; }, deadline);
}

void Admission::Return(std::int64_t bytes) {
  MutexLock lock(&mutex_);
  --jobs_;
  bytes_ -= bytes;
  metrics_.admission_bytes_used.Set(static_cast<double>(bytes_));
}

}  // namespace warpline
