#include "client/src/runner.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "client/src/attempts.h"
#include "client/src/interrupt.h"
#include "client/src/one_step.h"
#include "client/src/streaming.h"
#include "client/src/transfer.h"
#include "kernels/status_macros.h"
#include "warpline/error.h"

namespace warpline::client {
namespace {

// Counts one call, from Begin until this is destroyed.
class Holding {
 public:
  explicit Holding(std::atomic<int>& count) : count_(count) {}
  ~Holding() {
    if (counted_) --count_;
  }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;
  void Begin() {
    if (!std::exchange(counted_, true)) ++count_;
  }

 private:
  std::atomic<int>& count_;
  bool counted_ = false;
};

bool NamesTensors(const RunArgs& args) {
  return std::any_of(args.inputs.begin(), args.inputs.end(),
                     [](const auto& input) { return !input.second.resident.empty(); });
}

bool IsFinal(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && !DetailsOf(status).retry_delay.has_value();
}

// True if the message may have been larger than the server accepts.
bool MayBeTooLarge(const absl::Status& status) { return absl::IsInvalidArgument(status) || IsFinal(status); }

}  // namespace

std::shared_ptr<void> CallsInFlight::Count() {
  Add(1);
  return {this, [](CallsInFlight* calls) { calls->Add(-1); }};
}

void CallsInFlight::AwaitNone() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return count_ == 0; });
}

void CallsInFlight::Add(std::ptrdiff_t change) {
  const std::lock_guard lock(mutex_);
  count_ += change;
  if (count_ == 0) changed_.notify_all();
}

Runner::Runner(const CallSite& site, const ClientOptions& options, GetLimits get_limits)
    : site_(site),
      stream_from_bytes_(options.stream_from_bytes),
      channels_(options.channels),
      get_limits_(std::move(get_limits)) {}

absl::StatusOr<RunResult> Runner::Run(const RunArgs& args, absl::Duration timeout,
                                      const CallOptions& options) {
  RETURN_IF_ERROR(CheckTimeout(timeout));
  const absl::Time deadline = absl::Now() + timeout;
  ASSIGN_OR_RETURN(ResultTypes types, ResultTypesOf(args));
  BindIfTensors(args, options);
  const RegionTable& regions = site_.regions.table();
  LargeArrays large = LargeArraysOf(args, types, options, regions, stream_from_bytes_);
  if (large.any() && site_.pool == nullptr) return RunInRanges(args, large, deadline, options);
  absl::StatusOr<RunResult> result = RunInMessages(args, types, deadline, options);
  if (large.any() && IsTooLargeForPool(result.status())) return RunInRanges(args, large, deadline, options);
  // This server may accept smaller messages than others.
  const bool may_stream = !large.any() && stream_from_bytes_ != 0 && site_.pool == nullptr;
  if (result.ok() || !may_stream || !MayBeTooLarge(result.status())) return result;
  const absl::StatusOr<std::size_t> limit = InlineLimit(deadline);
  if (!limit.ok()) return result;
  large = LargeArraysOf(args, types, options, regions, *limit + 1);
  if (!large.any()) return result;
  large.inline_limit = *limit;
  absl::StatusOr<RunResult> streamed = RunInRanges(args, large, deadline, options);
  // The server does not support large arrays either. Return the first error: it concerns what the caller
  // asked for.
  if (IsFinal(streamed.status())) return result;
  return streamed;
}

void Runner::BindIfTensors(const RunArgs& args, const CallOptions& options) {
  const bool makes = std::any_of(args.destinations.begin(), args.destinations.end(),
                                 [](const Destination& to) { return to.keep.has_value(); });
  if (makes || !options.free_after.empty() || NamesTensors(args)) site_.connection.Bind();
}

absl::StatusOr<RunResult> Runner::RunInMessages(const RunArgs& args, ResultTypes types, absl::Time deadline,
                                                const CallOptions& options,
                                                const RawChannel::Transmit& transmit) {
  return Call(site_, args, std::move(types), options, deadline, /*keeps=*/false).Wait(transmit);
}

absl::StatusOr<RunResult> Runner::StreamOnce(const RunArgs& given, const LargeArrays& large,
                                             absl::Time deadline, const CallOptions& options, Stage& stage) {
  stage = Stage::kAsking;
  RunArgs args = given;
  std::vector<Operand*> uploads;
  for (const std::size_t i : large.operands) uploads.push_back(&args.inputs[i].second);
  for (const std::size_t i : large.results) {
    args.destinations.resize(std::max(args.destinations.size(), i + 1));
    args.destinations[i] = {.keep = absl::ZeroDuration(), .streamed = true};
  }
  ASSIGN_OR_RETURN(const int channels, ChannelsFor(channels_, large.operand_bytes));
  // Connect all at once, before the call: a server that is about to end serves ranges only on existing
  // connections.
  for (int i = 1; channels > 1 && i <= channels; ++i) {
    site_.connection.channel(static_cast<std::size_t>(i)).BeginConnecting();
  }
  Holding holds_room(holding_room_);
  Streaming streaming(site_.connection, site_.tensors,
                      {.deadline = deadline,
                       .request_id = options.request_id,
                       .channels = channels_,
                       .progress = options.progress,
                       .result_bytes = large.streamed_result_bytes});
  streaming.SetUploads(uploads);
  site_.connection.Bind();
  ASSIGN_OR_RETURN(ResultTypes types, ResultTypesOf(args));
  const auto send = [&](const std::string& accepted, const std::stop_token& ended) {
    stage = Stage::kAccepted;
    holds_room.Begin();
    return streaming.Send(accepted, ended);
  };
  ASSIGN_OR_RETURN(RunResult result, RunInMessages(args, std::move(types), deadline, options, send));
  stage = Stage::kComputed;
  for (const std::size_t i : large.results) {
    RETURN_IF_ERROR(streaming.Fetch(DestinationOf(given, i), result.outputs[i].second, result.tensors[i]));
  }
  result.streamed = {.operands = large.operands, .results = large.results};
  return result;
}

absl::StatusOr<RunResult> Runner::StreamWhenThereIsRoom(const RunArgs& args, const LargeArrays& large,
                                                        absl::Time deadline, const CallOptions& options,
                                                        Stage& stage) {
  int holding = holding_room_;
  absl::StatusOr<RunResult> result = StreamOnce(args, large, deadline, options, stage);
  // Other calls of this client will release their room. Waiting for that does not count as a retry.
  while (stage == Stage::kAsking && absl::IsResourceExhausted(result.status()) &&
         holding + holding_room_ > 0) {
    const std::optional<absl::Duration> delay = DetailsOf(result.status()).retry_delay;
    if (!delay || absl::Now() + *delay >= deadline || site_.connection.closed() || WasInterrupted()) break;
    site_.connection.channel().Pause(*delay);
    holding = holding_room_;
    result = StreamOnce(args, large, deadline, options, stage);
  }
  return result;
}

absl::StatusOr<RunResult> Runner::RunInRanges(const RunArgs& args, const LargeArrays& large,
                                              absl::Time deadline, const CallOptions& options) {
  Stage stage = Stage::kAsking;
  absl::StatusOr<RunResult> result = StreamWhenThereIsRoom(args, large, deadline, options, stage);
  if (result.ok()) return result;
  const absl::Status status = result.status();
  if (absl::Now() >= deadline || site_.connection.closed() || WasInterrupted()) return result;
  // The calls may have reached different servers: a restarted one, or several behind a load balancer.
  const bool names_tensors = NamesTensors(args) || !options.free_after.empty();
  const bool is_lost = absl::IsFailedPrecondition(status) || (absl::IsNotFound(status) && !names_tensors);
  // A server that is too old for uploads reports that the elements are missing.
  const bool is_old = stage == Stage::kAsking && absl::IsInvalidArgument(status) && !TakesUploads(deadline);
  const bool has_no_room = absl::IsUnimplemented(status) || absl::IsResourceExhausted(status) || is_old;
  // A message needs neither room on a device nor a second call, but the server must accept its size.
  if (stage != Stage::kComputed && large.may_be_inline() && (is_lost || has_no_room)) {
    const absl::StatusOr<std::size_t> limit = InlineLimit(deadline);
    if (limit.ok() && std::max(large.operand_bytes, large.result_bytes) > *limit) return result;
    ASSIGN_OR_RETURN(ResultTypes types, ResultTypesOf(args));
    absl::StatusOr<RunResult> in_messages = RunInMessages(args, std::move(types), deadline, options);
    // This error says no more than the first one.
    const absl::Status& error = in_messages.status();
    if (absl::IsResourceExhausted(error) || absl::IsInvalidArgument(error)) return result;
    return in_messages;
  }
  // Results that were fetched already may have overwritten operands.
  const bool is_intact = stage != Stage::kComputed || !OverlapsOperands(args);
  if (is_lost && is_intact && options.free_after.empty() && site_.connection.may_retry()) {
    return StreamOnce(args, large, deadline, options, stage);
  }
  return result;
}

void Runner::RunAsync(const RunArgs& args, absl::Duration timeout, const CallOptions& options,
                      Call::Done done) {
  if (absl::Status status = CheckTimeout(timeout); !status.ok()) return done(std::move(status));
  absl::StatusOr<ResultTypes> types = ResultTypesOf(args);
  if (!types.ok()) return done(types.status());
  BindIfTensors(args, options);
  const absl::Time deadline = absl::Now() + timeout;
  LargeArrays large = LargeArraysOf(args, *types, options, site_.regions.table(), stream_from_bytes_);
  if (large.any() && site_.pool == nullptr) {
    return RunInRangesOnThread(args, std::move(large), deadline, options, std::move(done));
  }
  if (large.any()) {
    done = [this, args, large = std::move(large), deadline, options,
            done = std::move(done)](absl::StatusOr<RunResult> result) {
      if (!IsTooLargeForPool(result.status())) return done(std::move(result));
      RunInRangesOnThread(args, large, deadline, options, done);
    };
  }
  std::make_shared<Call>(site_, args, *std::move(types), options, deadline, /*keeps=*/true)
      ->Start(std::move(done), calls_.Count());
}

void Runner::RunInRangesOnThread(const RunArgs& args, LargeArrays large, absl::Time deadline,
                                 const CallOptions& options, Call::Done done) {
  const auto give_up = streams_.Run([this, counted = calls_.Count(), args, large = std::move(large), deadline,
                                     options, done = std::move(done)](const absl::Status& status) {
    if (!status.ok()) return done(status);
    SetInterrupt([&] { return options.stop.stop_requested(); });
    BeginInterruptible();
    absl::StatusOr<RunResult> result = Interrupted() ? absl::CancelledError("the call was stopped")
                                                     : RunInRanges(args, large, deadline, options);
    SetInterrupt(nullptr);
    done(std::move(result));
  });
  site_.connection.Later(deadline - absl::Now(), options.stop, [give_up](bool open) {
    give_up(open ? absl::DeadlineExceededError("the deadline passed while other large calls were under way")
                 : absl::CancelledError("the call was stopped"));
  });
}

bool Runner::IsTooLargeForPool(const absl::Status& status) const {
  return site_.pool != nullptr && !site_.pool->always() && IsFinal(status);
}

bool Runner::TakesUploads(absl::Time deadline) const {
  const absl::StatusOr<v1::Limits> limits = get_limits_(deadline);
  return !limits.ok() || limits->max_upload_bytes() > 0;
}

absl::StatusOr<std::size_t> Runner::InlineLimit(absl::Time deadline) const {
  ASSIGN_OR_RETURN(const v1::Limits limits, get_limits_(deadline));
  return static_cast<std::size_t>(std::max<std::int64_t>(limits.max_inline_bytes(), 0));
}

}  // namespace warpline::client
