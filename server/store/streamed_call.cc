#include "server/store/streamed_call.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/align.h"
#include "kernels/program.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"

namespace warpline {
namespace {

constexpr absl::Duration kRetryAfter = absl::Milliseconds(50);

// The maximum number of separate pieces of one result that are remembered as sent. If a client requests more
// pieces that do not touch, the further ones count as no progress.
constexpr std::size_t kMaxPieces = 4096;

}  // namespace

StreamedCall::StreamedCall(StreamedCalls& calls, std::size_t bytes, std::size_t windows,
                           FairBudget::Part part, Ticket ticket)
    : calls_(calls),
      min_progress_(std::max(kMinProgress, bytes / kProgressShare)),
      windows_(windows),
      part_(std::move(part)),
      ticket_(std::move(ticket)) {
  // The client decides how long they are held.
  ticket_.MarkUnread();
}

StreamedCall::~StreamedCall() {
  MutexLock lock(&calls_.mutex_);
  calls_.calls_.erase(this);
}

void StreamedCall::Await(std::size_t uploads, Events events) {
  MutexLock lock(&mutex_);
  incomplete_ = uploads;
  seen_ = arrived_;
  events_ = std::move(events);
}

void StreamedCall::StopWaiting() {
  std::optional<Events> gone;  // destroyed after the lock is released
  MutexLock lock(&mutex_);
  gone.swap(events_);
}

void StreamedCall::OnArrived(std::size_t bytes, bool completes) {
  std::optional<Events> ended;
  {
    MutexLock lock(&mutex_);
    arrived_ += bytes;
    if (!events_.has_value()) return;
    if (completes) --incomplete_;
    // Bytes that are taken back and sent again are no progress. The last bytes always count, because what
    // follows may wait.
    if (arrived_ >= seen_ + min_progress_ || incomplete_ == 0) {
      seen_ = std::max(seen_, arrived_);
      events_->progress();
    }
    if (incomplete_ == 0) ended.swap(events_);
  }
  if (ended.has_value()) ended->complete();
}

void StreamedCall::OnTakenBack(std::size_t bytes) {
  MutexLock lock(&mutex_);
  arrived_ -= bytes;
}

std::size_t StreamedCall::arrived() const {
  MutexLock lock(&mutex_);
  return arrived_;
}

absl::Status StreamedCall::TakeWindow() {
  MutexLock lock(&mutex_);
  if (transfers_end_) {
    return absl::NotFoundError("the request that this upload belongs to has ended, or has all of it");
  }
  if (windows_used_ == windows_) {
    return WithRetryAfter(absl::ResourceExhaustedError(
                              absl::StrCat("the request that this belongs to may have ", windows_,
                                           " transfers at one time (Uploads.channels), and has as many")),
                          kRetryAfter);
  }
  ++windows_used_;
  return absl::OkStatus();
}

void StreamedCall::ReturnWindow() {
  MutexLock lock(&mutex_);
  --windows_used_;
  used_ = MonotonicClock::now();
  ReturnBudget();
}

void StreamedCall::EndTransfers() {
  MutexLock lock(&mutex_);
  transfers_end_ = true;
  ReturnBudget();
}

void StreamedCall::ReturnBudget() {
  if (!transfers_end_ || windows_used_ > 0) return;
  ticket_.Return();
  part_.Return();
}

std::function<void()> StreamedCall::GiveUpIfIdle(MonotonicTime since) const {
  MutexLock lock(&mutex_);
  if (!events_.has_value() || windows_used_ > 0 || used_ > since) return nullptr;
  return events_->give_up;
}

std::function<void()> StreamedCall::GiveUpIfWaiting() const {
  MutexLock lock(&mutex_);
  return events_.has_value() ? events_->give_up : nullptr;
}

std::size_t StreamedCall::AddResult() {
  MutexLock lock(&mutex_);
  sent_.emplace_back();
  progressed_ = MonotonicClock::now();
  return sent_.size() - 1;
}

void StreamedCall::OnSent(std::size_t result, const ByteRange& range) {
  MutexLock lock(&mutex_);
  ByteRanges& sent = sent_[result];
  if (sent.count() >= kMaxPieces && !sent.Touches(range)) return;
  sent_bytes_ += sent.AddMissing(range);
  if (sent_bytes_ < sent_seen_ + min_progress_) return;
  sent_seen_ = sent_bytes_;
  progressed_ = MonotonicClock::now();
}

MonotonicTime StreamedCall::progressed() const {
  MutexLock lock(&mutex_);
  return progressed_;
}

void StreamedCall::Expire() {
  MutexLock lock(&mutex_);
  has_expired_ = true;
}

bool StreamedCall::has_expired() const {
  MutexLock lock(&mutex_);
  return has_expired_;
}

MonotonicTime StreamedCall::used() const {
  MutexLock lock(&mutex_);
  return windows_used_ > 0 ? MonotonicClock::now() : used_;
}

void StreamedCall::Use() {
  MutexLock lock(&mutex_);
  used_ = MonotonicClock::now();
}

StreamedCalls::StreamedCalls(const Options& options, AllocateMemory allocate, FairBudget& transfers,
                             Admission& admission, Metrics& metrics)
    : options_(options), allocate_(std::move(allocate)), transfers_(transfers), admission_(admission) {
  for (std::size_t i = 0; i < options_.device_bytes.size(); ++i) {
    devices_.emplace_back(FairBudget::Options{
        .total = static_cast<std::int64_t>(options_.device_bytes[i]),
        .what = absl::StrCat("bytes of uploads and streamed results on device ", i, " (--upload-bytes)"),
        .retry_after = kRetryAfter,
        .first_is_granted = false});
    bytes_.push_back(metrics.UploadBytes(static_cast<int>(i)));
  }
}

std::size_t StreamedCalls::MaxBytesOf(const Claimant& claimant) const {
  std::int64_t most = 0;
  for (const FairBudget& device : devices_) most = std::max(most, device.Largest(claimant));
  return static_cast<std::size_t>(most);
}

int StreamedCalls::DeviceFor(std::optional<int> preferred, std::size_t bytes) const {
  const auto left = [this](std::size_t i) {
    return static_cast<std::int64_t>(options_.device_bytes[i]) - devices_[i].used();
  };
  if (preferred.has_value() &&
      left(static_cast<std::size_t>(*preferred)) >= static_cast<std::int64_t>(bytes)) {
    return *preferred;
  }
  std::size_t best = 0;
  for (std::size_t i = 1; i < devices_.size(); ++i) {
    if (left(i) > left(best)) best = i;
  }
  return static_cast<int>(best);
}

// Takes a number of windows that suits the size, or fewer if not enough are free.
absl::StatusOr<std::shared_ptr<StreamedCall>> StreamedCalls::TakeWindows(const Caller& caller,
                                                                         std::size_t bytes) {
  const std::size_t window = StreamedCall::kChunksOfWindow * options_.chunk_bytes;
  // An eighth of the budget leaves room for other calls of the same client.
  const std::size_t most = std::clamp<std::size_t>(static_cast<std::size_t>(transfers_.total()) / 8 / window,
                                                   1, StreamedCall::kMaxWindows);
  std::size_t windows = std::clamp<std::size_t>(bytes / window, 1, most);
  for (;; windows /= 2) {
    // Arrays that fit into one chunk take no more than they have: many calls with small results may be open.
    const std::size_t needed =
        bytes <= options_.chunk_bytes ? std::max<std::size_t>(bytes, 1) : windows * window;
    // A budget smaller than one window must still allow one.
    const std::int64_t held = std::min(static_cast<std::int64_t>(needed), transfers_.total());
    absl::StatusOr<FairBudget::Part> part = transfers_.Take(caller.claimant, held);
    absl::StatusOr<Ticket> ticket = part.ok() ? admission_.AdmitMore(held, caller) : part.status();
    if (ticket.ok()) {
      MutexLock lock(&mutex_);
      if (drains_) return absl::UnavailableError("the server is draining");
      const std::shared_ptr<StreamedCall> call(
          new StreamedCall(*this, bytes, windows, *std::move(part), *std::move(ticket)));
      calls_.insert(call.get());
      return call;
    }
    if (windows == 1) return ticket.status();
  }
}

absl::StatusOr<StreamedCalls::Opened> StreamedCalls::Open(const Caller& caller, std::optional<int> preferred,
                                                          std::span<const std::size_t> bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 50;  // the sum of the arrays cannot overflow
  std::size_t total = 0;
  for (const std::size_t each : bytes) total += AlignUp(std::min(each, kMost), kTensorAlignment);
  Opened opened;
  opened.device = DeviceFor(preferred, total);
  const auto index = static_cast<std::size_t>(opened.device);
  const std::size_t limit = options_.device_bytes[index];
  if (limit == 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the server takes no uploads and streams no results on device ", opened.device,
                     ": its --upload-bytes is 0 there"));
  }
  struct Charge {
    Charge(FairBudget::Part part, Gauge gauge, double bytes)
        : part(std::move(part)), gauge(gauge), bytes(bytes) {
      gauge.Add(bytes);
    }
    ~Charge() { gauge.Add(-bytes); }
    Charge(const Charge&) = delete;
    Charge& operator=(const Charge&) = delete;

    FairBudget::Part part;
    Gauge gauge;
    double bytes;
  };
  ASSIGN_OR_RETURN(FairBudget::Part part,
                   devices_[index].Take(caller.claimant, static_cast<std::int64_t>(total)));
  ASSIGN_OR_RETURN(opened.call, TakeWindows(caller, total));
  // The charge for all arrays must end after the memory of each is freed.
  const auto charge = std::make_shared<Charge>(std::move(part), bytes_[index], static_cast<double>(total));
  for (const std::size_t each : bytes) {
    absl::StatusOr<Buffer> allocated = allocate_(opened.device, each);
    if (absl::IsResourceExhausted(allocated.status())) {
      return WithRetryAfter(absl::ResourceExhaustedError(absl::StrCat(
                                "an array of ", each, " bytes does not fit: device ", opened.device,
                                " has no such block left: ", allocated.status().message())),
                            kRetryAfter);
    }
    RETURN_IF_ERROR(allocated.status());
    struct Held {
      std::shared_ptr<void> charge;
      Buffer memory;
    };
    const Place place = allocated->place();
    const std::span<std::byte> all = allocated->bytes();
    opened.memory.emplace_back(all, place, std::make_shared<Held>(charge, *std::move(allocated)));
  }
  return opened;
}

void StreamedCalls::Drain() {
  MutexLock lock(&mutex_);
  drains_ = true;
}

void StreamedCalls::End(const std::function<std::function<void()>(const StreamedCall&)>& ending) {
  std::vector<std::function<void()>> given_up;  // called after the lock is released
  {
    MutexLock lock(&mutex_);
    for (const StreamedCall* call : calls_) {
      if (auto give_up = ending(*call)) given_up.push_back(std::move(give_up));
    }
  }
  for (const auto& give_up : given_up) give_up();
}

void StreamedCalls::EndIdle(absl::Duration idle) {
  const MonotonicTime since = MonotonicClock::now() - absl::ToChronoNanoseconds(idle);
  End([since](const StreamedCall& call) { return call.GiveUpIfIdle(since); });
}

void StreamedCalls::EndWaiting() {
  End([](const StreamedCall& call) { return call.GiveUpIfWaiting(); });
}

std::size_t StreamedCalls::count() const {
  MutexLock lock(&mutex_);
  return calls_.size();
}

}  // namespace warpline
