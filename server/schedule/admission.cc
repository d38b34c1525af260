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
  part_ = other.part_;
  return *this;
}

void Ticket::MarkUnread() {
  if (admission_ == nullptr || part_.unread) return;
  part_.unread = true;
  admission_->MarkUnread(part_);
}

void Ticket::Return() {
  if (admission_ != nullptr) std::exchange(admission_, nullptr)->Return(part_);
}

Admission::Admission(Options options, Metrics& metrics)
    : options_(std::move(options)), max_jobs_(options_.max_jobs), metrics_(metrics) {
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

std::optional<Admission::Refusal> Admission::WhyNot(const Ticket::Part& part,
                                                    const OwnerLimits& limits) const {
  const std::int64_t bytes = part.bytes;
  const Claimant& claimant = part.caller.claimant;
  if (part.jobs > 0 && all_.jobs >= max_jobs_) {
    return Refusal{"jobs", absl::StrCat(all_.jobs, " jobs admitted, limit ", max_jobs_, " (--max-jobs)")};
  }
  if (all_.bytes + bytes > LimitWithReserve()) {
    return Refusal{"bytes", absl::StrCat(all_.bytes, " bytes admitted, ", bytes, " more asked for, limit ",
                                         LimitWithReserve())};
  }
  if (!part.small) {
    const std::int64_t max_jobs = std::max<std::int64_t>(1, max_jobs_ - max_jobs_ / 4);
    if (part.jobs > 0 && large_.jobs >= max_jobs) {
      return Refusal{"jobs", absl::StrCat(large_.jobs, " jobs of more than ", options_.small_bytes,
                                          " bytes admitted, limit ", max_jobs)};
    }
    if (large_.bytes + bytes > options_.max_bytes) {
      return Refusal{"bytes", absl::StrCat(large_.bytes, " bytes admitted for requests that are not small, ",
                                           bytes, " more asked for, limit ", options_.max_bytes)};
    }
  }
  if (auto refusal = BeyondQuota(part, limits); refusal.has_value()) return refusal;
  const auto share = shares_.find(claimant.share);
  const auto client = clients_.find(claimant);
  const bool is_new_share = share == shares_.end(), is_new_client = client == clients_.end();
  if (!is_new_client && client->second.unread_bytes > options_.max_bytes / 2) {
    return Refusal{
        "unread", absl::StrCat(client->second.unread_bytes,
                               " bytes of this client's results are unread, limit ", options_.max_bytes / 2)};
  }
  if (is_new_share) return std::nullopt;
  const auto shares = static_cast<std::int64_t>(shares_.size());
  if (auto refusal = BeyondShare(part, share->second.use, shares); refusal.has_value()) return refusal;
  if (is_new_client) return std::nullopt;
  return BeyondShare(part, client->second.use, shares * share->second.clients);
}

std::optional<Admission::Refusal> Admission::BeyondQuota(const Ticket::Part& part,
                                                         const OwnerLimits& limits) const {
  const std::int64_t bytes = part.bytes;
  const auto found = owners_.find(part.caller.owner);
  if (found == owners_.end()) return std::nullopt;
  const Use& own = found->second;
  if (part.jobs > 0 && limits.jobs.has_value() && own.jobs >= *limits.jobs) {
    return Refusal{"quota",
                   absl::StrCat(own.jobs, " jobs of this owner admitted, its quota is ", *limits.jobs)};
  }
  if (limits.bytes.has_value() && own.bytes + bytes > *limits.bytes) {
    return Refusal{"quota", absl::StrCat(own.bytes, " bytes of this owner admitted, ", bytes,
                                         " more asked for, its quota is ", *limits.bytes)};
  }
  return std::nullopt;
}

std::optional<Admission::Refusal> Admission::BeyondShare(const Ticket::Part& part, const Use& own,
                                                         std::int64_t sharers) const {
  if (sharers == 1) return std::nullopt;
  const std::int64_t bytes = part.bytes;
  const std::int64_t jobs = std::max<std::int64_t>(1, max_jobs_ / sharers);
  if (part.jobs > 0 && all_.jobs >= max_jobs_ / 2 && own.jobs >= jobs) {
    return Refusal{"share", absl::StrCat(own.jobs, " jobs of this client admitted, its share beside ",
                                         sharers - 1, " others is ", jobs)};
  }
  if (all_.bytes + bytes > options_.max_bytes / 2 && own.bytes + bytes > options_.max_bytes / sharers) {
    return Refusal{"share", absl::StrCat(own.bytes, " bytes of this client admitted, ", bytes,
                                         " more asked for, its share beside ", sharers - 1, " others is ",
                                         options_.max_bytes / sharers)};
  }
  return std::nullopt;
}

void Admission::SetMaxJobs(std::int64_t max_jobs) {
  MutexLock lock(&mutex_);
  max_jobs_ = max_jobs;
}

absl::StatusOr<Ticket> Admission::Admit(std::int64_t bytes, const Caller& caller, std::int64_t size) {
  return Take({.caller = caller, .bytes = bytes, .small = IsSmall(size)});
}

absl::StatusOr<Ticket> Admission::Take(const Ticket::Part& part) {
  const nvtx::Range range(nvtx::Name::kAdmission);
  const std::int64_t bytes = part.bytes;
  const Caller& caller = part.caller;
  const OwnerLimits limits = options_.limits_of != nullptr ? options_.limits_of(caller.owner) : OwnerLimits();
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
  const std::optional<Refusal> refusal = WhyNot(part, limits);
  if (refusal.has_value()) {
    metrics_.CountRejection(refusal->reason);
    return WithRetryAfter(absl::ResourceExhaustedError(absl::StrCat("the server is full: ", refusal->text)),
                          options_.retry_after);
  }
  Count(part, 1);
  return Ticket(this, part);
}

void Admission::Drain() {
  MutexLock lock(&mutex_);
  draining_ = true;
}

bool Admission::AwaitIdle(MonotonicTime deadline) {
  MutexLock lock(&mutex_);
  return mutex_.AwaitUntil([this] { return all_.tickets == 0; }, deadline);
}

void Admission::MarkUnread(const Ticket::Part& part) {
  MutexLock lock(&mutex_);
  clients_[part.caller.claimant].unread_bytes += part.bytes;
}

void Admission::Return(const Ticket::Part& part) {
  MutexLock lock(&mutex_);
  if (part.unread) clients_[part.caller.claimant].unread_bytes -= part.bytes;
  Count(part, -1);
}

void Admission::Count(const Ticket::Part& part, int tickets) {
  const Caller& caller = part.caller;
  const int jobs = tickets * part.jobs;
  const auto add = [&](Use& use) {
    use.tickets += tickets;
    use.jobs += jobs;
    use.bytes += tickets * part.bytes;
    return use.tickets;
  };
  add(all_);
  if (!part.small) add(large_);
  ShareUse& share = shares_[caller.claimant.share];
  ClientUse& client = clients_[caller.claimant];
  if (client.use.tickets == 0) ++share.clients;
  if (add(client.use) == 0) {
    --share.clients;
    clients_.erase(caller.claimant);
  }
  if (add(share.use) == 0) shares_.erase(caller.claimant.share);
  metrics_.admission_bytes_used.Set(static_cast<double>(all_.bytes));
  if (options_.limits_of != nullptr && add(owners_[caller.owner]) == 0) owners_.erase(caller.owner);
  if (options_.owner_metrics == nullptr) return;
  const OwnerSeries& series = options_.owner_metrics->Of(caller.owner);
  series.jobs.Add(jobs);
  series.bytes.Add(tickets * static_cast<double>(part.bytes));
}

}  // namespace warpline
