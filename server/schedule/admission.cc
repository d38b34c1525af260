#include "server/schedule/admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/errors.h"
#include "server/observe/nvtx.h"

namespace warpline {

Ticket& Ticket::operator=(Ticket&& other) noexcept {
  if (this == &other) return *this;
  Return();
  admission_ = std::exchange(other.admission_, nullptr);
  share_ = other.share_;
  return *this;
}

void Ticket::MarkUnread() {
  if (admission_ == nullptr || share_.unread) return;
  share_.unread = true;
  admission_->MarkUnread(share_);
}

void Ticket::Return() {
  if (admission_ != nullptr) std::exchange(admission_, nullptr)->Return(share_);
}

Admission::Admission(Options options, Metrics& metrics) : options_(std::move(options)), metrics_(metrics) {
  metrics_.admission_bytes_limit.Set(static_cast<double>(options_.max_bytes));
}

absl::Status Admission::CheckFits(std::int64_t bytes) const {
  if (bytes <= options_.max_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the request and its result have ", bytes, " bytes together, limit ", options_.max_bytes));
}

std::int64_t Admission::MostBytesOf(OwnerId owner) const {
  const OwnerLimits limits = options_.limits_of != nullptr ? options_.limits_of(owner) : OwnerLimits();
  return std::min(options_.max_bytes, limits.bytes.value_or(options_.max_bytes));
}

std::optional<Admission::Refusal> Admission::WhyNot(std::int64_t bytes, OwnerId owner, bool small,
                                                    const OwnerLimits& limits) const {
  if (all_.jobs >= options_.max_jobs) {
    return Refusal{"jobs", absl::StrCat(all_.jobs, " jobs admitted, limit ", options_.max_jobs)};
  }
  if (all_.bytes + bytes > LimitWithReserve()) {
    return Refusal{"bytes", absl::StrCat(all_.bytes, " bytes admitted, ", bytes, " more asked for, limit ",
                                         LimitWithReserve())};
  }
  if (!small) {
    const std::int64_t max_jobs = std::max<std::int64_t>(1, options_.max_jobs - options_.max_jobs / 4);
    if (large_.jobs >= max_jobs) {
      return Refusal{"jobs", absl::StrCat(large_.jobs, " jobs of more than ", options_.small_bytes,
                                          " bytes admitted, limit ", max_jobs)};
    }
    if (large_.bytes + bytes > options_.max_bytes) {
      return Refusal{"bytes", absl::StrCat(large_.bytes, " bytes admitted for requests that are not small, ",
                                           bytes, " more asked for, limit ", options_.max_bytes)};
    }
  }
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return std::nullopt;
  const OwnersUse& own = found->second;
  if (limits.jobs.has_value() && own.all.jobs >= *limits.jobs) {
    return Refusal{"quota",
                   absl::StrCat(own.all.jobs, " jobs of this owner admitted, its quota is ", *limits.jobs)};
  }
  if (limits.bytes.has_value() && own.all.bytes + bytes > *limits.bytes) {
    return Refusal{"quota", absl::StrCat(own.all.bytes, " bytes of this owner admitted, ", bytes,
                                         " more asked for, its quota is ", *limits.bytes)};
  }
  if (own.unread_bytes > options_.max_bytes / 2) {
    return Refusal{"unread",
                   absl::StrCat(own.unread_bytes, " bytes of this client's results are unread, limit ",
                                options_.max_bytes / 2)};
  }
  const auto owners = static_cast<std::int64_t>(owners_.size());
  if (owners == 1) return std::nullopt;
  if (all_.jobs >= options_.max_jobs / 2 &&
      own.all.jobs >= std::max<std::int64_t>(1, options_.max_jobs / owners)) {
    return Refusal{"share", absl::StrCat(own.all.jobs, " jobs of this client admitted, its share beside ",
                                         owners - 1, " others ", options_.max_jobs / owners)};
  }
  if (all_.bytes + bytes > options_.max_bytes / 2 && own.all.bytes + bytes > options_.max_bytes / owners) {
    return Refusal{"share", absl::StrCat(own.all.bytes, " bytes of this client admitted, ", bytes,
                                         " more asked for, its share beside ", owners - 1, " others ",
                                         options_.max_bytes / owners)};
  }
  return std::nullopt;
}

absl::StatusOr<Ticket> Admission::Admit(std::int64_t bytes, OwnerId owner, std::int64_t size) {
  const nvtx::Range range(nvtx::Name::kAdmission);
  const OwnerLimits limits = options_.limits_of != nullptr ? options_.limits_of(owner) : OwnerLimits();
  MutexLock lock(&mutex_);
  if (draining_) {
    metrics_.CountRejection("draining");
    return absl::UnavailableError("the server is draining");
  }
  if (limits.bytes.has_value() && bytes > *limits.bytes) {
    metrics_.CountRejection("quota");
    return absl::ResourceExhaustedError(absl::StrCat(
        "the request and its result have ", bytes, " bytes together, this owner's quota is ", *limits.bytes));
  }
  const std::optional<Refusal> refusal = WhyNot(bytes, owner, IsSmall(size), limits);
  if (refusal.has_value()) {
    metrics_.CountRejection(refusal->reason);
    return WithRetryAfter(absl::ResourceExhaustedError(absl::StrCat("the server is full: ", refusal->text)),
                          options_.retry_after);
  }
  const Ticket::Share share{.owner = owner, .bytes = bytes, .small = IsSmall(size)};
  OwnersUse& own = owners_[owner];
  for (Use* use : {&all_, &own.all, share.small ? nullptr : &large_}) {
    if (use == nullptr) continue;
    ++use->jobs;
    use->bytes += bytes;
  }
  metrics_.admission_bytes_used.Set(static_cast<double>(all_.bytes));
  Show(share, 1);
  return Ticket(this, share);
}

void Admission::Drain() {
  MutexLock lock(&mutex_);
  draining_ = true;
}

bool Admission::AwaitIdle(MonotonicTime deadline) {
  MutexLock lock(&mutex_);
  return mutex_.AwaitUntil([this] { return all_.jobs == 0; }, deadline);
}

void Admission::MarkUnread(const Ticket::Share& share) {
  MutexLock lock(&mutex_);
  owners_[share.owner].unread_bytes += share.bytes;
}

void Admission::Return(const Ticket::Share& share) {
  MutexLock lock(&mutex_);
  OwnersUse& own = owners_[share.owner];
  for (Use* use : {&all_, &own.all, share.small ? nullptr : &large_}) {
    if (use == nullptr) continue;
    --use->jobs;
    use->bytes -= share.bytes;
  }
  if (share.unread) own.unread_bytes -= share.bytes;
  if (own.all.jobs == 0) owners_.erase(share.owner);
  metrics_.admission_bytes_used.Set(static_cast<double>(all_.bytes));
  Show(share, -1);
}

void Admission::Show(const Ticket::Share& share, int jobs) {
  if (options_.owner_metrics == nullptr) return;
  const OwnerSeries& series = options_.owner_metrics->Of(share.owner);
  series.jobs.Add(jobs);
  series.bytes.Add(jobs * static_cast<double>(share.bytes));
}

}  // namespace warpline
