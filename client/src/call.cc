#include "client/src/call.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "client/src/callback_thread.h"
#include "client/src/codec.h"
#include "client/src/grpc_error.h"
#include "client/src/interrupt.h"
#include "client/src/methods.h"
#include "client/src/one_step.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

// How often one attempt places its arrays, at most. A server that loses regions faster is unusable.
constexpr int kMaxPlacements = 3;

}  // namespace

Call::Call(const CallSite& site, const RunArgs& args, ResultTypes types, const CallOptions& options,
           absl::Time deadline, bool keeps)
    : site_(site),
      placed_(site.pool, args, std::move(types), keeps),
      options_(options),
      deadline_(deadline) {}

absl::Status Call::Place() {
  // Placing may use at most half of the time that is left: the call needs the rest.
  const absl::Time now = absl::Now();
  return placed_.placement().Place(now + (deadline_ - now) / 2, site_.connection.may_retry());
}

absl::StatusOr<OutgoingMessage> Call::Encode() {
  attempt_ = std::make_shared<RegionCall>(site_.regions, /*lost_is_ordinary=*/placed_.placement().active());
  const RunArgs& args = placed_.args();
  const bool may_place = std::any_of(args.destinations.begin(), args.destinations.end(),
                                     [&](const Destination& each) { return attempt_->MayPlace(each); });
  if (may_place) RETURN_IF_ERROR(attempt_->Place(args.destinations, placed_.types()));
  return client::Encode(args, attempt_->places(),
                        {.free_after = options_.free_after, .report = options_.report});
}

absl::StatusOr<RunResult> Call::Decode(const grpc::ByteBuffer& response) {
  site_.tensors.on_freed(options_.free_after)();
  const RunArgs& args = placed_.args();
  const std::vector<std::string> outputs(args.program.outputs().begin(), args.program.outputs().end());
  ASSIGN_OR_RETURN(RunResult result, DecodeRunResult(response, outputs, args.destinations,
                                                     site_.tensors.make_tensor(), attempt_->places()));
  std::vector<Array*> arrays;
  for (auto& [name, array] : result.outputs) arrays.push_back(&array);
  RETURN_IF_ERROR(placed_.placement().Deliver(arrays));
  return result;
}

bool Call::MayBeLostRegion(const absl::Status& status) const {
  const bool is_strange =
      absl::IsNotFound(status) || absl::IsFailedPrecondition(status) || absl::IsAborted(status);
  return is_strange && !was_resent_ && attempt_ != nullptr && attempt_->uses_regions();
}

bool Call::IsWithdrawn() const {
  return !withdrawn_.valid() || withdrawn_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

absl::StatusOr<RunResult> Call::Wait(const RawChannel::Transmit& transmit) {
  const auto run = [&]() -> absl::StatusOr<RunResult> {
    ASSIGN_OR_RETURN(const grpc::ByteBuffer response,
                     site_.connection.Call(
                         RunMethod(), [this] { return PlaceAndEncode(); }, deadline_, options_.request_id,
                         [this](const absl::Status& status) { return ResendAfter(status); },
                         /*repeatable=*/options_.free_after.empty(), transmit));
    return Decode(response);
  };
  absl::StatusOr<RunResult> result = run();
  if (!result.ok()) return InOneStep(placed_.args(), result.status());
  return result;
}

// First waits until the server no longer uses the memory of the previous attempt. If that takes longer than
// the deadline, returns the error of the previous attempt.
absl::StatusOr<OutgoingMessage> Call::PlaceAndEncode() {
  if (!AwaitWithdrawal()) return error_;
  for (int i = 1;; ++i) {
    RETURN_IF_ERROR(PlaceWithRetries());
    absl::StatusOr<OutgoingMessage> message = Encode();
    // If a region was lost meanwhile, the message may contain the elements of large arrays.
    if (!message.ok() || i == kMaxPlacements || !placed_.placement().lost_region()) return message;
  }
}

absl::Status Call::PlaceWithRetries() {
  Attempts attempts = site_.connection.AttemptsUntil(deadline_);
  while (true) {
    absl::Status status = Place();
    if (status.ok()) return status;
    const std::optional<absl::Duration> delay = attempts.DelayAfter(status);
    if (!delay) return WithAttempts(status, attempts.failed() + 1);
    site_.connection.channel().Pause(*delay);
  }
}

// After this returns, the server no longer uses the caller's memory.
bool Call::ResendAfter(const absl::Status& status) {
  error_ = status;
  if (!placed_.placement().active()) {
    WithdrawAndWait(*attempt_);
    return false;
  }
  withdrawn_ = BeginWithdrawal(attempt_);
  if (placed_.placement().writes_in_place()) withdrawn_.wait();
  if (!MayBeLostRegion(status)) return false;
  // The server certainly does not know the region if the region's connection has ended. This client may
  // notice that a little later.
  if (!AwaitWithdrawal()) return false;
  was_resent_ = attempt_->lost_region();
  return was_resent_;
}

// Returns false if the wait exceeds the deadline, the client is closed, or the thread is interrupted.
bool Call::AwaitWithdrawal() const {
  if (!withdrawn_.valid()) return true;
  while (withdrawn_.wait_for(kInterruptPeriod) != std::future_status::ready) {
    if (absl::Now() >= deadline_ || site_.connection.closed() || Interrupted()) return false;
  }
  return true;
}

void Call::Start(Done done, std::shared_ptr<void> counted) {
  attempts_ = std::make_shared<Attempts>(
      site_.connection.AttemptsUntil(deadline_, /*repeatable=*/options_.free_after.empty()));
  done_ = std::move(done);
  counted_ = std::move(counted);
  Send();
}

void Call::Send() {
  if (const absl::Status status = Place(); !status.ok()) return Failed(status);
  absl::StatusOr<OutgoingMessage> message = Encode();
  if (!message.ok()) return Finish(message.status());
  const auto ended = [self = shared_from_this()](const absl::StatusOr<grpc::ByteBuffer>& response) {
    if (!response.ok()) return self->Withdraw(response.status());
    self->Finish(self->Decode(*response));
  };
  site_.connection.channel().CallAsync(RunMethod(), *std::move(message), deadline_, options_.request_id,
                                       ended, options_.stop);
}

// The attempt has failed. The caller or the next attempt may use its memory once the server has confirmed
// that the attempt ended.
void Call::Withdraw(const absl::Status& status) {
  if (!attempt_->uses_regions()) return Failed(status);
  if (placed_.placement().active() && !placed_.placement().writes_in_place()) {
    withdrawn_ = BeginWithdrawal(attempt_);
    return Failed(status);
  }
  // A callback must block neither this thread nor the thread that learns of the end.
  CallbackThread& callbacks = site_.regions.callbacks();
  callbacks.Expect();
  attempt_->Withdraw([self = shared_from_this(), &callbacks, status] {
    callbacks.Run([self, status] { self->Failed(status); });
  });
}

void Call::Failed(const absl::Status& status) {
  const auto self = shared_from_this();
  if (placed_.placement().active() && MayBeLostRegion(status)) {
    was_resent_ = true;
    return AfterWithdrawal([self, status](bool has_ended) {
      if (has_ended && self->attempt_->lost_region()) return self->Send();
      self->Finish(WithAttempts(status, self->attempts_->failed() + 1));
    });
  }
  site_.connection.RetryAsync(
      attempts_, status, options_.stop,
      [self, status] {
        self->AfterWithdrawal([self, status](bool has_ended) {
          if (has_ended) return self->Send();
          self->Finish(status);
        });
      },
      [self](absl::Status last) { self->Finish(std::move(last)); });
}

// Calls `then(true)` once the server no longer uses the memory of the last attempt. Calls `then(false)` after
// the deadline, if the call is cancelled, or if the client is closed. Other retries continue meanwhile.
void Call::AfterWithdrawal(std::function<void(bool)> then) {
  const bool has_ended = IsWithdrawn();
  if (has_ended || absl::Now() >= deadline_) return then(has_ended);
  site_.connection.Later(absl::Milliseconds(10), options_.stop,
                         [self = shared_from_this(), then = std::move(then)](bool open) {
                           if (open) return self->AfterWithdrawal(then);
                           then(false);
                         });
}

void Call::Finish(absl::StatusOr<RunResult> result) {
  if (!result.ok()) result = InOneStep(placed_.args(), result.status());
  if (attempt_ != nullptr && !withdrawn_.valid()) attempt_->Release();
  attempt_ = nullptr;
  placed_.Release();
  done_(std::move(result));
}

}  // namespace warpline::client
