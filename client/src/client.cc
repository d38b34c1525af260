#include "warpline/client.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "client/src/arrived.h"
#include "client/src/attempts.h"
#include "client/src/codec.h"
#include "client/src/connection.h"
#include "client/src/grpc_error.h"
#include "client/src/interrupt.h"
#include "client/src/message_writer.h"
#include "client/src/methods.h"
#include "client/src/placed.h"
#include "client/src/region_attempts.h"
#include "client/src/region_call.h"
#include "client/src/region_client.h"
#include "client/src/region_pool.h"
#include "client/src/result_type.h"
#include "client/src/shared_region.h"
#include "client/src/stream_threads.h"
#include "client/src/streaming.h"
#include "client/src/tensor_client.h"
#include "client/src/transfer.h"
#include "google/protobuf/unknown_field_set.h"
#include "kernels/status_macros.h"
#include "proto/wire/tensor_field.h"
#include "warpline/error.h"

namespace warpline::client {
namespace {

absl::StatusOr<std::string> Flatten(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  if (message.Valid() && !message.Dump(&slices).ok()) return absl::InternalError("unreadable response");
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

std::vector<std::string> OutputsOf(const RunArgs& args) {
  return {args.program.outputs().begin(), args.program.outputs().end()};
}

// The operands and results of a call, by their places, that do not travel in its messages.
struct LargeArrays {
  std::vector<std::size_t> operands, results;
  std::size_t operand_bytes = 0, result_bytes = 0;  // with the small ones
  std::size_t streamed_result_bytes = 0;            // without them
  std::size_t all_results = 0;                      // how many there are
  std::size_t inline_limit = kMaxMessageBytes;      // of either in a message

  bool any() const { return !operands.empty() || !results.empty(); }
  // True if they could travel in messages all the same.
  bool may_be_inline() const { return operand_bytes <= inline_limit && result_bytes <= inline_limit; }
};

// True if a call names tensors of the caller.
template <typename Args>
bool NamesTensors(const Args& args, const CallOptions& options) {
  bool names = !options.free_after.empty();
  ForEachOperand(args, [&](const Operand& operand) { names = names || !operand.resident.empty(); });
  return names;
}

// Returns where result `i` goes. `options` are those of the call.
Destination DestinationOf(const OperationArgs&, const CallOptions& options, std::size_t) {
  return options.destination;
}
Destination DestinationOf(const RunArgs& args, const CallOptions&, std::size_t i) {
  return i < args.destinations.size() ? args.destinations[i] : Destination();
}
void SetDestination(OperationArgs&, CallOptions& options, std::size_t, const Destination& to) {
  options.destination = to;
}
void SetDestination(RunArgs& args, CallOptions&, std::size_t i, const Destination& to) {
  args.destinations.resize(std::max(args.destinations.size(), i + 1));
  args.destinations[i] = to;
}

absl::Status FetchInto(Streaming& streaming, const Destination& to, std::size_t, Result& result) {
  return streaming.Fetch(to, result.array, result.tensor);
}
absl::Status FetchInto(Streaming& streaming, const Destination& to, std::size_t i, RunResult& result) {
  return streaming.Fetch(to, result.outputs[i].second, result.tensors[i]);
}

}  // namespace

// Counts calls that nobody waits for, until the last has let go of all that it uses.
class CallsInFlight {
 public:
  // Counts one call for as long as this exists.
  class Counted {
   public:
    explicit Counted(CallsInFlight& calls) : calls_(calls) { calls_.Add(1); }
    ~Counted() { calls_.Add(-1); }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

   private:
    CallsInFlight& calls_;
  };

  void AwaitNone() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  void Add(std::ptrdiff_t change) {
    const std::lock_guard lock(mutex_);
    count_ += change;
    if (count_ == 0) changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::ptrdiff_t count_ = 0;
};

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

class Client::Impl {
 public:
  ~Impl() {
    connection_.EndRetries();
    calls_.AwaitNone();
  }
  Impl(const std::string& target, const ClientOptions& options)
      : stream_from_bytes_(options.stream_from_bytes),
        channels_(options.channels),
        regions_(target, options),
        connection_(target, options),
        tensors_(connection_, options.channels) {
    const SharedMemory mode = options.shared_memory;
    const bool may_share = mode == SharedMemory::kAuto && regions_.SocketPath().ok();
    if (may_share || mode == SharedMemory::kAlways) pool_.emplace(regions_, connection_, options);
  }

  // A second caller waits for the first.
  void Close() {
    std::call_once(closed_, [this] {
      tensors_.Close();
      connection_.Close();
    });
  }
  TensorClient& tensors() { return tensors_; }
  absl::StatusOr<Region> OpenRegion(std::size_t bytes, absl::Duration timeout) {
    return regions_.Open(connection_, bytes, timeout);
  }
  absl::StatusOr<v1::GetInfoResponse> GetInfo(absl::Duration timeout);
  absl::StatusOr<Array> Empty(DType dtype, const Shape& shape, absl::Duration timeout);
  bool Shares(const void* data, std::size_t bytes) const;
  std::string TakeWarning() { return pool_ ? pool_->TakeWarning() : ""; }
  // A call that has nothing to do with regions.
  absl::StatusOr<grpc::ByteBuffer> Call(const std::string& method,
                                        const std::function<absl::StatusOr<OutgoingMessage>()>& encode,
                                        absl::Duration timeout) {
    RETURN_IF_ERROR(CheckTimeout(timeout));
    return connection_.Call(method, encode, absl::Now() + timeout, "");
  }
  absl::StatusOr<Result> Compute(const OperationArgs& args, absl::Duration timeout,
                                 const CallOptions& options);
  absl::StatusOr<RunResult> Compute(const RunArgs& args, absl::Duration timeout, const CallOptions& options);
  void ComputeAsync(const OperationArgs& args, absl::Duration timeout, const CallOptions& options,
                    std::function<void(absl::StatusOr<Result>)> done);
  void ComputeAsync(const RunArgs& args, absl::Duration timeout, const CallOptions& options,
                    std::function<void(absl::StatusOr<RunResult>)> done);

 private:
  // `encode` makes the message, and `decode` the result out of the response, both with the regions' part in
  // the attempt. The placement is that of the message.
  template <typename Encode, typename Decode>
  auto Call(const std::string& method, Placement& placement, const Encode& encode, const Decode& decode,
            absl::Duration timeout, const CallOptions& options, const RawChannel::Transmit& transmit)
      -> decltype(decode(grpc::ByteBuffer(), SharedPlaces()));
  template <typename Args, typename Outcome>
  struct Repeated;
  template <typename Args, typename Outcome>
  void Repeat(const std::string& method, const Args& args, absl::Duration timeout, const CallOptions& options,
              std::function<void(absl::StatusOr<Outcome>)> done);
  // Streams a call that nobody waits for.
  template <typename Args, typename Outcome>
  void StreamOnThread(const Args& args, LargeArrays large, absl::Time deadline, const CallOptions& options,
                      std::function<void(absl::StatusOr<Outcome>)> done);
  RegionPool* pool() { return pool_ ? &*pool_ : nullptr; }

  // A call that names tensors, or makes one, must meet the server that the client's other calls meet.
  template <typename Args>
  void BindIfTensors(const Args& args, const ResultTypes& types, const CallOptions& options);
  template <typename Args>
  LargeArrays LargeOf(const Args& args, const ResultTypes& types, const CallOptions& options,
                      std::size_t stream_from_bytes) const;
  // True for what a message that is larger than the server takes may end with.
  static bool MayBeTooLarge(const absl::Status& status) {
    return absl::IsInvalidArgument(status) ||
           (absl::IsResourceExhausted(status) && !DetailsOf(status).retry_delay.has_value());
  }
  // Returns the most bytes that operands, or results, may have together in a message.
  absl::StatusOr<std::size_t> InlineLimit(absl::Time deadline);
  // False only if the server says that it takes no uploads.
  bool TakesUploads(absl::Time deadline);
  // In messages, or in ranges.
  template <typename Outcome, typename Args>
  absl::StatusOr<Outcome> ComputeSomehow(const Args& args, absl::Duration timeout,
                                         const CallOptions& options);
  // All arrays that are neither in regions nor uploads travel in the messages. `transmit` sends the uploads.
  absl::StatusOr<Result> ComputeInMessages(const OperationArgs& args, ResultTypes types,
                                           absl::Duration timeout, const CallOptions& options,
                                           const RawChannel::Transmit& transmit = nullptr);
  absl::StatusOr<RunResult> ComputeInMessages(const RunArgs& args, ResultTypes types, absl::Duration timeout,
                                              const CallOptions& options,
                                              const RawChannel::Transmit& transmit = nullptr);
  template <typename Outcome, typename Args>
  absl::StatusOr<Outcome> ComputeStreamed(const Args& args, const LargeArrays& large, absl::Time deadline,
                                          const CallOptions& options);
  // Says how far a streamed call came: the server has accepted it, or computed it.
  enum class Stage { kAsking, kAccepted, kComputed };
  template <typename Outcome, typename Args>
  absl::StatusOr<Outcome> StreamOnce(const Args& given, const LargeArrays& large, absl::Time deadline,
                                     const CallOptions& options, Stage& stage);
  // True for what a message of arrays ends with that the pool was to carry, and did not: the server shares no
  // memory, or there was no room.
  bool IsTooLarge(const absl::Status& status) const;
  // True if a result is written to memory of an operand.
  template <typename Args>
  static bool OverlapsOperands(const Args& args, const LargeArrays& large, const CallOptions& options);

  const std::size_t stream_from_bytes_;
  const int channels_;
  std::atomic<int> holding_room_ = 0;  // streamed calls that the server has accepted
  std::once_flag closed_;
  CallsInFlight calls_;             // those of ComputeAsync
  StreamThreads streams_;           // for calls of ComputeAsync with large arrays
  RegionClient regions_;            // calls in flight use it
  std::optional<RegionPool> pool_;  // calls in flight use it
  Connection connection_;
  TensorClient tensors_;  // before the connection ends, it drops what is left
};

template <typename Encode, typename Decode>
auto Client::Impl::Call(const std::string& method, Placement& placement, const Encode& encode,
                        const Decode& decode, absl::Duration timeout, const CallOptions& options,
                        const RawChannel::Transmit& transmit)
    -> decltype(decode(grpc::ByteBuffer(), SharedPlaces())) {
  RETURN_IF_ERROR(CheckTimeout(timeout));
  const absl::Time deadline = absl::Now() + timeout;
  RegionAttempts attempts(regions_, connection_, placement, deadline);
  const auto encode_attempt = [&] { return attempts.Encode(encode); };
  const auto failed = [&](const absl::Status& status) { return attempts.Failed(status); };
  ASSIGN_OR_RETURN(const grpc::ByteBuffer response,
                   connection_.Call(method, encode_attempt, deadline, options.request_id, failed,
                                    /*repeatable=*/options.free_after.empty(), transmit));
  return decode(response, attempts.last().places());
}

namespace {

SentOptions SentOf(const CallOptions& options) {
  return {.free_after = options.free_after, .report = options.report};
}

// The message of one attempt.
absl::StatusOr<OutgoingMessage> EncodePlaced(const Placed<OperationArgs>& placed, RegionCall& attempt,
                                             const SentOptions& options) {
  const Destination& destination = placed.destination();
  if (attempt.MayPlace(destination)) RETURN_IF_ERROR(attempt.Place({&destination, 1}, placed.types()));
  return std::visit(
      [&](const auto& operation) { return Encode(operation, destination, attempt.places(), options); },
      placed.args());
}

absl::StatusOr<OutgoingMessage> EncodePlaced(const Placed<RunArgs>& placed, RegionCall& attempt,
                                             const SentOptions& options) {
  const RunArgs& args = placed.args();
  const bool may_place = std::any_of(args.destinations.begin(), args.destinations.end(),
                                     [&](const Destination& each) { return attempt.MayPlace(each); });
  if (may_place) RETURN_IF_ERROR(attempt.Place(args.destinations, placed.types()));
  return Encode(args, attempt.places(), options);
}

absl::StatusOr<Result> DecodePlaced(Placed<OperationArgs>& placed, const grpc::ByteBuffer& response,
                                    const MakeTensor& make_tensor, const SharedPlaces& places) {
  ASSIGN_OR_RETURN(Result result, DecodeResult(response, placed.destination(), make_tensor, places));
  RETURN_IF_ERROR(placed.placement().Deliver(std::array{&result.array}));
  return result;
}

absl::StatusOr<RunResult> DecodePlaced(Placed<RunArgs>& placed, const grpc::ByteBuffer& response,
                                       const MakeTensor& make_tensor, const SharedPlaces& places) {
  const RunArgs& args = placed.args();
  ASSIGN_OR_RETURN(RunResult result,
                   DecodeRunResult(response, OutputsOf(args), args.destinations, make_tensor, places));
  std::vector<Array*> arrays;
  for (auto& [name, array] : result.outputs) arrays.push_back(&array);
  RETURN_IF_ERROR(placed.placement().Deliver(arrays));
  return result;
}

}  // namespace

template <typename Args>
void Client::Impl::BindIfTensors(const Args& args, const ResultTypes& types, const CallOptions& options) {
  bool binds = NamesTensors(args, options);
  for (std::size_t i = 0; i < types.size(); ++i) {
    binds = binds || DestinationOf(args, options, i).keep.has_value();
  }
  if (binds) connection_.Bind();
}

template <typename Args>
LargeArrays Client::Impl::LargeOf(const Args& args, const ResultTypes& types, const CallOptions& options,
                                  std::size_t stream_from_bytes) const {
  LargeArrays large;
  large.all_results = types.size();
  if (stream_from_bytes == 0) return large;
  // Most calls are small, and end here.
  std::size_t most = 0, most_of_results = 0;
  ForEachOperand(args, [&](const Operand& operand) {
    most += ByteSize({.dtype = operand.dtype, .shape = operand.shape}).value_or(0);
  });
  for (const std::optional<ArrayType>& type : types) most_of_results += type.has_value() ? type->bytes : 0;
  if (most < stream_from_bytes && most_of_results < stream_from_bytes) return large;
  const auto is_in_region = [&](const void* data) {
    return data != nullptr && regions_.table().Find(data, 0) != nullptr;
  };
  std::vector<std::size_t> bytes;
  ForEachOperand(args, [&](const Operand& operand) {
    // An operand that is not valid is reported when it is encoded.
    const bool travels = operand.resident.empty() && !is_in_region(operand.data);
    bytes.push_back(travels ? ByteSize({.dtype = operand.dtype, .shape = operand.shape}).value_or(0) : 0);
  });
  large.operands = LargestOf(bytes, stream_from_bytes, kMaxUploads);
  large.operand_bytes = std::accumulate(bytes.begin(), bytes.end(), std::size_t{0});
  bytes.clear();
  for (std::size_t i = 0; i < types.size(); ++i) {
    const Destination to = DestinationOf(args, options, i);
    const bool travels = types[i].has_value() && !to.keep && to.region == nullptr && !is_in_region(to.data);
    // A destination that is too small is the same error as without.
    bytes.push_back(travels && (to.data == nullptr || to.bytes >= types[i]->bytes) ? types[i]->bytes : 0);
  }
  // The call must not free tensors before its results are here.
  if (options.free_after.empty()) large.results = LargestOf(bytes, stream_from_bytes);
  for (const std::size_t i : large.results) large.streamed_result_bytes += bytes[i];
  large.result_bytes = std::accumulate(bytes.begin(), bytes.end(), std::size_t{0});
  return large;
}

template <typename Outcome, typename Args>
absl::StatusOr<Outcome> Client::Impl::StreamOnce(const Args& given, const LargeArrays& large,
                                                 absl::Time deadline, const CallOptions& options,
                                                 Stage& stage) {
  stage = Stage::kAsking;
  Args args = given;
  CallOptions own = options;
  std::vector<Operand*> operands, uploads;
  ForEachOperand(args, [&](Operand& operand) { operands.push_back(&operand); });
  for (const std::size_t i : large.operands) uploads.push_back(operands[i]);
  for (const std::size_t i : large.results) {
    SetDestination(args, own, i, {.keep = absl::ZeroDuration(), .streamed = true});
  }
  ASSIGN_OR_RETURN(const int channels, ChannelsFor(channels_, large.operand_bytes));
  // All at once, before the call: a server that is about to end serves ranges on connections that it has.
  for (int i = 1; channels > 1 && i <= channels; ++i) {
    connection_.channel(static_cast<std::size_t>(i)).BeginConnecting();
  }
  const StreamingOptions shared{.deadline = deadline,
                                .request_id = options.request_id,
                                .channels = channels_,
                                .progress = options.progress,
                                .result_bytes = large.streamed_result_bytes};
  Holding holds_room(holding_room_);
  Streaming streaming(connection_, tensors_, shared);
  streaming.SetUploads(uploads);
  connection_.Bind();
  ASSIGN_OR_RETURN(ResultTypes types, ResultTypesOf(args));
  const absl::Duration left = std::max(deadline - absl::Now(), absl::Nanoseconds(1));
  ASSIGN_OR_RETURN(Outcome outcome,
                   ComputeInMessages(args, std::move(types), left, own,
                                     [&](const std::string& accepted, const std::stop_token& ended) {
                                       stage = Stage::kAccepted;
                                       holds_room.Begin();
                                       return streaming.Send(accepted, ended);
                                     }));
  stage = Stage::kComputed;
  for (const std::size_t i : large.results) {
    RETURN_IF_ERROR(FetchInto(streaming, DestinationOf(given, options, i), i, outcome));
  }
  outcome.streamed = {.operands = large.operands, .results = large.results};
  return outcome;
}

template <typename Outcome, typename Args>
absl::StatusOr<Outcome> Client::Impl::ComputeStreamed(const Args& args, const LargeArrays& large,
                                                      absl::Time deadline, const CallOptions& options) {
  Stage stage = Stage::kAsking;
  int holding = holding_room_;
  absl::StatusOr<Outcome> outcome = StreamOnce<Outcome>(args, large, deadline, options, stage);
  // Others of our own calls will give their room back: to wait for that is no retry.
  while (stage == Stage::kAsking && absl::IsResourceExhausted(outcome.status()) &&
         holding + holding_room_ > 0) {
    const std::optional<absl::Duration> delay = DetailsOf(outcome.status()).retry_delay;
    if (!delay || absl::Now() + *delay >= deadline || connection_.closed() || WasInterrupted()) break;
    connection_.channel().Pause(*delay);
    holding = holding_room_;
    outcome = StreamOnce<Outcome>(args, large, deadline, options, stage);
  }
  if (outcome.ok()) return outcome;
  const absl::Status status = outcome.status();
  const absl::Duration left = deadline - absl::Now();
  if (left <= absl::ZeroDuration() || connection_.closed() || WasInterrupted()) return outcome;
  // The calls may have met several servers: one that was started anew, or those behind a balancer.
  const bool is_lost =
      absl::IsFailedPrecondition(status) || (absl::IsNotFound(status) && !NamesTensors(args, options));
  // A server that is older than uploads finds that the elements are missing.
  const bool is_old = stage == Stage::kAsking && absl::IsInvalidArgument(status) && !TakesUploads(deadline);
  const bool has_no_room = absl::IsUnimplemented(status) || absl::IsResourceExhausted(status) || is_old;
  // A message needs neither room on a device nor a second call, but the server must take as much.
  if (stage != Stage::kComputed && large.may_be_inline() && (is_lost || has_no_room)) {
    const absl::StatusOr<std::size_t> limit = InlineLimit(deadline);
    if (limit.ok() && std::max(large.operand_bytes, large.result_bytes) > *limit) return outcome;
    ASSIGN_OR_RETURN(ResultTypes types, ResultTypesOf(args));
    absl::StatusOr<Outcome> inline_outcome = ComputeInMessages(args, std::move(types), left, options);
    // An error that says no more than the first one.
    const absl::Status& error = inline_outcome.status();
    if (absl::IsResourceExhausted(error) || absl::IsInvalidArgument(error)) return outcome;
    return inline_outcome;
  }
  // Results that have been fetched may have replaced operands.
  const bool is_intact = stage != Stage::kComputed || !OverlapsOperands(args, large, options);
  if (is_lost && is_intact && options.free_after.empty() && connection_.may_retry()) {
    return StreamOnce<Outcome>(args, large, deadline, options, stage);
  }
  return outcome;
}

bool Client::Impl::IsTooLarge(const absl::Status& status) const {
  if (!absl::IsResourceExhausted(status) || !pool_ || pool_->always()) return false;
  return !DetailsOf(status).retry_delay.has_value();
}

template <typename Args>
bool Client::Impl::OverlapsOperands(const Args& args, const LargeArrays& large, const CallOptions& options) {
  bool overlaps = false;
  for (std::size_t i = 0; i < large.all_results; ++i) {
    const Destination to = DestinationOf(args, options, i);
    if (to.data == nullptr) continue;
    const auto* const begin = static_cast<const std::byte*>(to.data);
    ForEachOperand(args, [&](const Operand& operand) {
      if (!operand.resident.empty() || operand.data == nullptr) return;
      const auto* const data = static_cast<const std::byte*>(operand.data);
      overlaps |= data < begin + to.bytes && begin < data + ByteSize(operand.AsArray()).value_or(0);
    });
  }
  return overlaps;
}

template <typename Outcome, typename Args>
absl::StatusOr<Outcome> Client::Impl::ComputeSomehow(const Args& args, absl::Duration timeout,
                                                     const CallOptions& options) {
  RETURN_IF_ERROR(CheckTimeout(timeout));
  const absl::Time deadline = absl::Now() + timeout;
  ASSIGN_OR_RETURN(ResultTypes types, ResultTypesOf(args));
  BindIfTensors(args, types, options);
  LargeArrays large = LargeOf(args, types, options, stream_from_bytes_);
  if (large.any() && !pool_) return ComputeStreamed<Outcome>(args, large, deadline, options);
  absl::StatusOr<Outcome> outcome = ComputeInMessages(args, types, timeout, options);
  if (large.any() && IsTooLarge(outcome.status())) {
    return ComputeStreamed<Outcome>(args, large, deadline, options);
  }
  // This server may take less in a message than others.
  if (outcome.ok() || large.any() || stream_from_bytes_ == 0 || pool_ || !MayBeTooLarge(outcome.status())) {
    return outcome;
  }
  const absl::StatusOr<std::size_t> limit = InlineLimit(deadline);
  if (!limit.ok()) return outcome;
  large = LargeOf(args, types, options, *limit + 1);
  if (!large.any()) return outcome;
  large.inline_limit = *limit;
  absl::StatusOr<Outcome> streamed = ComputeStreamed<Outcome>(args, large, deadline, options);
  // A server that takes no large arrays either: the first error is about what the caller has asked for.
  const absl::Status& status = streamed.status();
  if (absl::IsResourceExhausted(status) && !DetailsOf(status).retry_delay.has_value()) return outcome;
  return streamed;
}

bool Client::Impl::TakesUploads(absl::Time deadline) {
  const absl::StatusOr<v1::GetInfoResponse> info = GetInfo(deadline - absl::Now());
  return !info.ok() || info->limits().max_upload_bytes() > 0;
}

absl::StatusOr<std::size_t> Client::Impl::InlineLimit(absl::Time deadline) {
  ASSIGN_OR_RETURN(const v1::GetInfoResponse info, GetInfo(deadline - absl::Now()));
  return static_cast<std::size_t>(std::max<std::int64_t>(info.limits().max_inline_bytes(), 0));
}

absl::StatusOr<Result> Client::Impl::Compute(const OperationArgs& args, absl::Duration timeout,
                                             const CallOptions& options) {
  return ComputeSomehow<Result>(args, timeout, options);
}

absl::StatusOr<RunResult> Client::Impl::Compute(const RunArgs& args, absl::Duration timeout,
                                                const CallOptions& options) {
  return ComputeSomehow<RunResult>(args, timeout, options);
}

absl::StatusOr<Result> Client::Impl::ComputeInMessages(const OperationArgs& args, ResultTypes types,
                                                       absl::Duration timeout, const CallOptions& options,
                                                       const RawChannel::Transmit& transmit) {
  Placed<OperationArgs> placed(pool(), args, std::move(types), options.destination, /*keeps=*/false);
  const auto encode = [&](RegionCall& attempt) { return EncodePlaced(placed, attempt, SentOf(options)); };
  const auto decode = [&](const grpc::ByteBuffer& response, const SharedPlaces& places) {
    tensors_.on_freed(options.free_after)();
    return DecodePlaced(placed, response, tensors_.make_tensor(), places);
  };
  return Call(MethodOf(args), placed.placement(), encode, decode, timeout, options, transmit);
}

absl::StatusOr<RunResult> Client::Impl::ComputeInMessages(const RunArgs& args, ResultTypes types,
                                                          absl::Duration timeout, const CallOptions& options,
                                                          const RawChannel::Transmit& transmit) {
  Placed<RunArgs> placed(pool(), args, std::move(types), {}, /*keeps=*/false);
  const auto encode = [&](RegionCall& attempt) { return EncodePlaced(placed, attempt, SentOf(options)); };
  const auto decode = [&](const grpc::ByteBuffer& response, const SharedPlaces& places) {
    tensors_.on_freed(options.free_after)();
    return DecodePlaced(placed, response, tensors_.make_tensor(), places);
  };
  return Call(RunMethod(), placed.placement(), encode, decode, timeout, options, transmit);
}

// A call that nobody waits for, with its attempts.
template <typename Args, typename Outcome>
struct Client::Impl::Repeated : std::enable_shared_from_this<Repeated<Args, Outcome>> {
  Repeated(Impl& client, std::string method, const Args& args, ResultTypes types, const CallOptions& options,
           absl::Time deadline, std::function<void(absl::StatusOr<Outcome>)> done)
      : counted(client.calls_),
        client(client),
        method(std::move(method)),
        placed(client.pool(), args, std::move(types), options.destination, /*keeps=*/true),
        make_tensor(client.tensors_.make_tensor()),
        free_after(options.free_after),
        report(options.report),
        freed(client.tensors_.on_freed(options.free_after)),
        request_id(options.request_id),
        stop(options.stop),
        attempts(std::make_shared<Attempts>(client.connection_.AttemptsUntil(deadline, free_after.empty()))),
        done(std::move(done)) {}

  void Start() {
    Placement& placement = placed.placement();
    // The call needs half of the time left.
    const absl::Time now = absl::Now();
    const absl::Status status =
        placement.Place(now + (attempts->deadline() - now) / 2, client.connection_.may_retry());
    if (!status.ok()) return Failed(status);
    attempt = std::make_shared<RegionCall>(client.regions_, /*lost_is_ordinary=*/placement.active());
    absl::StatusOr<OutgoingMessage> message =
        EncodePlaced(placed, *attempt, {.free_after = free_after, .report = report});
    if (!message.ok()) return Finish(message.status());
    const auto ended = [self = this->shared_from_this()](const absl::StatusOr<grpc::ByteBuffer>& response) {
      if (!response.ok()) return self->Withdraw(response.status());
      self->freed();
      auto outcome = DecodePlaced(self->placed, *response, self->make_tensor, self->attempt->places());
      self->Finish(std::move(outcome));
    };
    client.connection_.channel().CallAsync(method, *std::move(message), attempts->deadline(), request_id,
                                           ended, stop);
  }

  // The attempt has failed. Its memory is the caller's, or the next attempt's, when the server has confirmed
  // its end.
  void Withdraw(const absl::Status& status) {
    if (!attempt->uses_regions()) return Failed(status);
    Placement& placement = placed.placement();
    if (placement.active() && !placement.writes_in_place()) {
      withdrawn = BeginWithdrawal(attempt);
      return Failed(status);
    }
    // Neither this thread nor the one that hears of the end may be kept from its work by a callback.
    CallbackThread& callbacks = client.regions_.callbacks();
    callbacks.Expect();
    attempt->Withdraw([self = this->shared_from_this(), &callbacks, status] {
      callbacks.Run([self, status] { self->Failed(status); });
    });
  }

  // Gives up all that the call had, and then calls back.
  void Finish(absl::StatusOr<Outcome> outcome) {
    if (attempt != nullptr && !withdrawn.valid()) attempt->Release();
    attempt = nullptr;
    placed.Release();
    done(std::move(outcome));
  }

  void Failed(const absl::Status& status) {
    const auto self = this->shared_from_this();
    // The server's codes for a region that it does not know, and for one that it lost meanwhile.
    const bool strange =
        absl::IsNotFound(status) || absl::IsFailedPrecondition(status) || absl::IsAborted(status);
    if (placed.placement().active() && strange && attempt != nullptr && attempt->uses_regions() && !resent) {
      resent = true;
      return AfterWithdrawal([self, status](bool has_ended) {
        if (has_ended && self->attempt->lost_region()) return self->Start();
        self->Finish(WithAttempts(status, self->attempts->failed() + 1));
      });
    }
    client.connection_.RetryAsync(
        attempts, status, stop,
        [self, status] {
          self->AfterWithdrawal([self, status](bool has_ended) {
            if (has_ended) return self->Start();
            self->Finish(status);
          });
        },
        [self](absl::Status last) { self->Finish(std::move(last)); });
  }

  // Goes on, with true, once the server does not use the memory of the last attempt; with false after the
  // deadline, and if the call is cancelled or the client closed. Other retries go on meanwhile.
  void AfterWithdrawal(std::function<void(bool)> then) {
    const bool has_ended =
        !withdrawn.valid() || withdrawn.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    if (has_ended || absl::Now() >= attempts->deadline()) return then(has_ended);
    client.connection_.Later(absl::Milliseconds(10), stop,
                             [self = this->shared_from_this(), then = std::move(then)](bool open) {
                               if (open) return self->AfterWithdrawal(then);
                               then(false);
                             });
  }

  const CallsInFlight::Counted counted;  // the last to go
  Impl& client;
  const std::string method;
  Placed<Args> placed;
  const MakeTensor make_tensor;
  const std::vector<std::string> free_after;
  const bool report;
  const std::function<void()> freed;
  const std::string request_id;
  const std::stop_token stop;
  const std::shared_ptr<Attempts> attempts;
  const std::function<void(absl::StatusOr<Outcome>)> done;
  std::shared_ptr<RegionCall> attempt;  // the last
  std::future<void> withdrawn;          // of the last attempt
  bool resent = false;
};

template <typename Args, typename Outcome>
void Client::Impl::Repeat(const std::string& method, const Args& args, absl::Duration timeout,
                          const CallOptions& options, std::function<void(absl::StatusOr<Outcome>)> done) {
  if (absl::Status status = CheckTimeout(timeout); !status.ok()) return done(std::move(status));
  absl::StatusOr<ResultTypes> types = ResultTypesOf(args);
  if (!types.ok()) return done(types.status());
  BindIfTensors(args, *types, options);
  const absl::Time deadline = absl::Now() + timeout;
  LargeArrays large = LargeOf(args, *types, options, stream_from_bytes_);
  if (large.any() && !pool_) {
    return StreamOnThread<Args, Outcome>(args, std::move(large), deadline, options, std::move(done));
  }
  if (large.any()) {
    done = [this, args, large = std::move(large), deadline, options,
            done = std::move(done)](absl::StatusOr<Outcome> outcome) {
      if (!IsTooLarge(outcome.status())) return done(std::move(outcome));
      StreamOnThread<Args, Outcome>(args, large, deadline, options, done);
    };
  }
  std::make_shared<Repeated<Args, Outcome>>(*this, method, args, *std::move(types), options, deadline,
                                            std::move(done))
      ->Start();
}

template <typename Args, typename Outcome>
void Client::Impl::StreamOnThread(const Args& args, LargeArrays large, absl::Time deadline,
                                  const CallOptions& options,
                                  std::function<void(absl::StatusOr<Outcome>)> done) {
  const auto give_up = streams_.Run([this, counted = std::make_shared<CallsInFlight::Counted>(calls_), args,
                                     large = std::move(large), deadline, options,
                                     done = std::move(done)](const absl::Status& status) {
    if (!status.ok()) return done(status);
    SetInterrupt([&] { return options.stop.stop_requested(); });
    BeginInterruptible();
    absl::StatusOr<Outcome> outcome = Interrupted()
                                          ? absl::CancelledError("the call was stopped")
                                          : ComputeStreamed<Outcome>(args, large, deadline, options);
    SetInterrupt(nullptr);
    done(std::move(outcome));
  });
  connection_.Later(deadline - absl::Now(), options.stop, [give_up](bool open) {
    give_up(open ? absl::DeadlineExceededError("the deadline passed while other large calls were under way")
                 : absl::CancelledError("the call was stopped"));
  });
}

void Client::Impl::ComputeAsync(const OperationArgs& args, absl::Duration timeout, const CallOptions& options,
                                std::function<void(absl::StatusOr<Result>)> done) {
  Repeat(MethodOf(args), args, timeout, options, std::move(done));
}

void Client::Impl::ComputeAsync(const RunArgs& args, absl::Duration timeout, const CallOptions& options,
                                std::function<void(absl::StatusOr<RunResult>)> done) {
  CallOptions own{.request_id = options.request_id,
                  .free_after = options.free_after,
                  .report = options.report,
                  .progress = options.progress,
                  .stop = options.stop};
  Repeat(RunMethod(), args, timeout, own, std::move(done));
}

bool Client::Impl::Shares(const void* data, std::size_t bytes) const {
  const std::shared_ptr<SharedRegion> region = regions_.table().Find(data, bytes);
  return region != nullptr && region->status().ok();
}

absl::StatusOr<Array> Client::Impl::Empty(DType dtype, const Shape& shape, absl::Duration timeout) {
  RETURN_IF_ERROR(CheckTimeout(timeout));
  Attempts attempts = connection_.AttemptsUntil(absl::Now() + timeout);
  while (pool_) {
    absl::StatusOr<Array> array = pool_->Empty(dtype, shape, attempts.deadline());
    if (array.ok()) return array;
    const std::optional<absl::Duration> delay = attempts.DelayAfter(array.status());
    if (!delay) return WithAttempts(array.status(), attempts.failed() + 1);
    connection_.channel().Pause(*delay);
  }
  ASSIGN_OR_RETURN(const std::size_t bytes, ByteSize({.dtype = dtype, .shape = shape}));
  return Array::Allocate(dtype, shape, bytes);
}

Client::Client(const std::string& target, const ClientOptions& options)
    : impl_(std::make_unique<Impl>(target, options)) {}
Client::~Client() = default;
void Client::Close() { impl_->Close(); }

absl::StatusOr<Result> Client::Transpose(const TransposeArgs& args, absl::Duration timeout,
                                         const CallOptions& options) {
  return impl_->Compute(args, timeout, options);
}

absl::StatusOr<Result> Client::Gemm(const GemmArgs& args, absl::Duration timeout,
                                    const CallOptions& options) {
  return impl_->Compute(args, timeout, options);
}

absl::StatusOr<Result> Client::Reduce(const ReduceArgs& args, absl::Duration timeout,
                                      const CallOptions& options) {
  return impl_->Compute(args, timeout, options);
}

absl::StatusOr<Result> Client::Call(const OperationArgs& args, absl::Duration timeout,
                                    const CallOptions& options) {
  return impl_->Compute(args, timeout, options);
}

absl::StatusOr<RunResult> Client::Run(const RunArgs& args, absl::Duration timeout,
                                      const CallOptions& options) {
  return impl_->Compute(args, timeout, options);
}

absl::StatusOr<Tensor> Client::Put(const ConstArray& array, absl::Duration timeout,
                                   const PutOptions& options) {
  return impl_->tensors().Put(array, timeout, options);
}

absl::StatusOr<Array> Client::Get(const Tensor& tensor, absl::Duration timeout, const GetOptions& options) {
  return impl_->tensors().Get(tensor.info(), timeout, options);
}

absl::StatusOr<Array> Client::Get(const std::string& id, absl::Duration timeout, const GetOptions& options) {
  return impl_->tensors().Get(id, timeout, options);
}

absl::Status Client::Drop(const std::string& id, absl::Duration timeout) {
  return impl_->tensors().Drop(id, timeout);
}

absl::StatusOr<TensorInfo> Client::Renew(const std::string& id, std::optional<absl::Duration> ttl,
                                         absl::Duration timeout) {
  return impl_->tensors().Renew(id, ttl, timeout);
}

absl::StatusOr<Tensor> Client::Attach(const std::string& id, absl::Duration timeout,
                                      const AttachOptions& options) {
  return impl_->tensors().Attach(id, timeout, options);
}

absl::StatusOr<std::vector<TensorInfo>> Client::ListTensors(absl::Duration timeout) {
  return impl_->tensors().List(timeout);
}

absl::StatusOr<Region> Client::OpenRegion(std::size_t bytes, absl::Duration timeout) {
  return impl_->OpenRegion(bytes, timeout);
}

bool Client::Shares(const void* data, std::size_t bytes) const { return impl_->Shares(data, bytes); }

absl::StatusOr<Array> Client::Empty(DType dtype, const Shape& shape, absl::Duration timeout) {
  return impl_->Empty(dtype, shape, timeout);
}

std::string Client::TakeWarning() { return impl_->TakeWarning(); }

absl::StatusOr<v1::GetInfoResponse> Client::GetInfo(absl::Duration timeout) {
  return impl_->GetInfo(timeout);
}

absl::StatusOr<v1::GetInfoResponse> Client::Impl::GetInfo(absl::Duration timeout) {
  ASSIGN_OR_RETURN(const grpc::ByteBuffer response,
                   Call(
                       GetInfoMethod(), [] { return MessageWriter().Finish(); }, timeout));
  ASSIGN_OR_RETURN(const std::string bytes, Flatten(response));
  v1::GetInfoResponse info;
  if (!info.ParseFromString(bytes)) return BadResponse("no GetInfoResponse");
  return info;
}

absl::StatusOr<bool> Client::IsServing(const std::string& service, absl::Duration timeout) {
  // The generated types of these messages are not linked: a program that has its own copy of them could not
  // link this library.
  constexpr int kService = 1;            // of HealthCheckRequest
  constexpr int kStatus = 1;             // of HealthCheckResponse
  constexpr std::uint64_t kServing = 1;  // a ServingStatus
  const auto encode = [&] {
    std::string request;
    AppendFieldHead(request, kService, service.size());
    MessageWriter message;
    message.Append(request + service);
    return std::move(message).Finish();
  };
  ASSIGN_OR_RETURN(const grpc::ByteBuffer response, impl_->Call(HealthMethod(), encode, timeout));
  ASSIGN_OR_RETURN(const std::string bytes, Flatten(response));
  google::protobuf::UnknownFieldSet fields;
  if (!fields.ParseFromString(bytes)) {
    return BadResponse("no HealthCheckResponse");
  }
  std::uint64_t status = 0;
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    if (field.number() != kStatus) continue;
    if (field.type() != google::protobuf::UnknownField::TYPE_VARINT)
      return BadResponse("no HealthCheckResponse");
    status = field.varint();
  }
  return status == kServing;
}

void Client::CallAsync(const OperationArgs& args, absl::Duration timeout, const CallOptions& options,
                       std::function<void(absl::StatusOr<Result>)> done) {
  impl_->ComputeAsync(args, timeout, options, std::move(done));
}

void Client::RunAsync(const RunArgs& args, absl::Duration timeout, const CallOptions& options,
                      std::function<void(absl::StatusOr<RunResult>)> done) {
  impl_->ComputeAsync(args, timeout, options, std::move(done));
}

}  // namespace warpline::client
