#include "client/src/transfer.h"

#include <algorithm>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/src/grpc_error.h"
#include "client/src/interrupt.h"
#include "client/src/methods.h"
#include "client/src/tensor_codec.h"
#include "kernels/status_macros.h"
#include "warpline/error.h"

namespace warpline::client {
namespace {

// Bytes of elements in one message. According to the API, messages of this size are fastest.
constexpr std::size_t kMessageBytes = std::size_t{1} << 20;
constexpr std::size_t kRangeBytes = std::size_t{64} << 20;
// One gRPC thread moves the bytes of a connection. docs/benchmarks/2026-11-27-h200-streaming.md: more than 8
// connections are not faster, and arrays of 8 MiB gain from 4.
constexpr std::size_t kBytesOfChannel = std::size_t{2} << 20;
constexpr std::size_t kUsualChannels = 8;
// How often a range may be refused while no other range is in flight.
constexpr int kMaxRefusals = 10;

}  // namespace

absl::StatusOr<int> ChannelsFor(int wanted, std::size_t bytes) {
  if (wanted < 0 || wanted > kMaxChannels) {
    return absl::InvalidArgumentError(
        absl::StrCat("channels is ", wanted, ": 1 to ", kMaxChannels, ", or 0 for as many as suit the size"));
  }
  if (wanted > 0) return wanted;
  return static_cast<int>(std::clamp<std::size_t>(bytes / kBytesOfChannel, 1, kUsualChannels));
}

std::vector<ElementRange> RangesOf(std::size_t bytes, int channels) {
  const std::size_t messages = (bytes + kMessageBytes - 1) / kMessageBytes;
  const auto shares = static_cast<std::size_t>(channels);
  const std::size_t size = std::min(kRangeBytes, (messages + shares - 1) / shares * kMessageBytes);
  std::vector<ElementRange> ranges;
  for (std::size_t begin = 0; begin < bytes; begin += size) {
    ranges.push_back({begin, std::min(begin + size, bytes)});
  }
  return ranges;
}

// Registers a call while it is in flight, so that Fail can cancel it.
class Transfer::Going {
 public:
  Going(Transfer& transfer, StreamCall& call) : transfer_(transfer), call_(call) {
    const std::lock_guard lock(transfer_.mutex_);
    transfer_.calls_.insert(&call_);
    if (!transfer_.failure_.ok()) call_.Cancel();
  }
  ~Going() {
    const std::lock_guard lock(transfer_.mutex_);
    transfer_.calls_.erase(&call_);
  }
  Going(const Going&) = delete;
  Going& operator=(const Going&) = delete;

 private:
  Transfer& transfer_;
  StreamCall& call_;
};

Transfer::Transfer(Connection& connection, absl::Time deadline, std::string request_id, Progress progress)
    : connection_(connection),
      deadline_(deadline),
      request_id_(std::move(request_id)),
      progress_(std::move(progress)) {}

absl::Status Transfer::Put(const std::string& id, const ConstArray& array, std::size_t bytes, int channels) {
  const std::vector<ElementRange> ranges = RangesOf(bytes, channels);
  RETURN_IF_ERROR(
      MoveAll({ranges.begin(), ranges.end()}, channels,
              [&](RawChannel& channel, ElementRange range) { return PutRange(channel, id, array, range); }));
  return CheckDoubt(id);
}

absl::Status Transfer::PutUpload(const std::string& id, const ConstArray& array, std::size_t bytes,
                                 int channels, const std::stop_token& ended) {
  of_call_ = true;
  const std::stop_callback on_end(ended, [this] { Fail(absl::CancelledError("the call has ended")); });
  const std::vector<ElementRange> ranges = RangesOf(bytes, channels);
  return MoveAll({ranges.begin(), ranges.end()}, channels, [&](RawChannel& channel, ElementRange range) {
    return PutRange(channel, id, array, range);
  });
}

absl::Status Transfer::Get(const std::string& id, std::span<std::byte> to, int channels) {
  std::vector<ElementRange> ranges = RangesOf(to.size(), channels);
  // An empty tensor is requested too: it may not exist.
  if (ranges.empty()) ranges.emplace_back();
  return MoveAll({ranges.begin(), ranges.end()}, channels,
                 [&](RawChannel& channel, ElementRange range) { return GetRange(channel, id, to, range); });
}

absl::Status Transfer::MoveAll(std::deque<ElementRange> ranges, int channels, const Move& move) {
  ranges_ = std::move(ranges);
  const std::size_t threads = std::min(static_cast<std::size_t>(channels), ranges_.size());
  // Several channels use their own connections, so that small calls on channel 0 do not wait behind them.
  const std::size_t first = threads > 1 ? 1 : 0;
  has_several_ = threads > 1;
  moving_ = 1;
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads; ++i) {
    try {
      {
        const std::lock_guard lock(mutex_);
        ++moving_;
      }
      others.emplace_back([this, channel = first + i, &move] { MoveSome(channel, move); });
    } catch (const std::system_error&) {
      const std::lock_guard lock(mutex_);
      --moving_;
      break;  // fewer threads move the same ranges
    }
  }
  MoveSome(first, move);
  for (std::thread& other : others) other.join();
  return failure_;
}

void Transfer::MoveSome(std::size_t channel, const Move& move) {
  while (true) {
    ElementRange range;
    {
      const std::lock_guard lock(mutex_);
      if (ranges_.empty() || !failure_.ok()) {
        --moving_;
        return;
      }
      range = ranges_.front();
      ranges_.pop_front();
    }
    const absl::Status status = move(connection_.channel(channel), range);
    if (status.ok()) continue;
    if (absl::IsUnavailable(status) && LeaveToOthers(range)) return;
    Fail(status);
  }
}

bool Transfer::LeaveToOthers(ElementRange range) {
  const std::lock_guard lock(mutex_);
  if (!of_call_ || moving_ == 1 || !failure_.ok()) return false;
  --moving_;
  has_left_ = true;
  ranges_.push_back(range);
  return true;
}

void Transfer::Fail(const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  if (!failure_.ok()) return;
  failure_ = status;
  for (StreamCall* call : calls_) call->Cancel();
  stopping_.notify_all();
}

std::optional<absl::Duration> Transfer::DelayForRoom(const absl::Status& status, int& refusals) {
  if (absl::Now() >= deadline_) return std::nullopt;
  {
    const std::lock_guard lock(mutex_);
    // The server may not know yet that a channel is lost.
    if (absl::IsAborted(status) && has_left_) return DetailsOf(status).retry_delay;
    if (!absl::IsResourceExhausted(status)) return std::nullopt;
    if (!has_several_ && !of_call_) return std::nullopt;
    // The server may not know yet that a range has ended.
    if (calls_.empty() && ++refusals > kMaxRefusals) return std::nullopt;
  }
  return DetailsOf(status).retry_delay;
}

absl::Status Transfer::Retry(Attempts& attempts, const std::function<absl::Status()>& attempt) {
  int refusals = 0;
  while (true) {
    const absl::Status status = attempt();
    if (status.ok()) return status;
    std::optional<absl::Duration> delay = DelayForRoom(status, refusals);
    if (!delay) delay = attempts.DelayAfter(status);
    if (!delay) return WithAttempts(status, attempts.failed() + 1);
    const absl::Time end = absl::Now() + *delay;
    const auto stopped = [this] { return !failure_.ok(); };
    while (absl::Now() < end) {
      if (connection_.closed() || Interrupted()) return status;
      std::unique_lock lock(mutex_);
      const absl::Duration left = std::min(end - absl::Now(), absl::FromChrono(kInterruptPeriod));
      if (stopping_.wait_for(lock, absl::ToChronoNanoseconds(left), stopped)) return status;
    }
  }
}

absl::Status Transfer::PutRange(RawChannel& channel, const std::string& id, const ConstArray& array,
                                ElementRange range) {
  Attempts attempts = connection_.AttemptsUntil(deadline_);
  const absl::Status status = Retry(attempts, [&] {
    StreamCall call(channel, PutMethod(), deadline_, request_id_);
    const Going going(*this, call);
    std::size_t at = range.begin;
    for (std::size_t end = at; at < range.end; at = end) {
      end = std::min(at + kMessageBytes, range.end);
      if (Interrupted()) call.Cancel();
      if (!call.Write(EncodePut(at == range.begin ? id : "", array, at, end), end == range.end)) break;
      Moved(static_cast<std::ptrdiff_t>(end - at));
    }
    grpc::ByteBuffer response;
    const bool answered = at == range.end && call.Read(response);
    absl::Status ended = call.Finish();
    if (ended.ok() && !answered) ended = absl::InternalError("the server ended the call without an answer");
    if (!ended.ok()) Moved(-static_cast<std::ptrdiff_t>(at - range.begin));
    return ended;
  });
  const std::lock_guard lock(mutex_);
  if (!absl::IsInvalidArgument(status) || (attempts.failed() == 0 && !has_left_)) return status;
  // A range that seemed to fail may have been written after all. Then the server refuses the second attempt.
  doubt_ = status;
  return absl::OkStatus();
}

absl::Status Transfer::CheckDoubt(const std::string& id) {
  if (doubt_.ok()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const grpc::ByteBuffer response,
                   connection_.Call(
                       RenewMethod(), [&] { return EncodeRenew(id, {}); }, deadline_, request_id_));
  ASSIGN_OR_RETURN(const TensorInfo info, DecodeTensor(response));
  return info.missing_bytes == 0 ? absl::OkStatus() : doubt_;
}

absl::Status Transfer::GetRange(RawChannel& channel, const std::string& id, std::span<std::byte> to,
                                ElementRange range) {
  Attempts attempts = connection_.AttemptsUntil(deadline_);
  // The start of the next message. After a failure, the transfer continues from there.
  std::size_t at = range.begin;
  const absl::Status status = Retry(attempts, [&]() -> absl::Status {
    if (at == range.end && range.begin < range.end) return absl::OkStatus();
    StreamCall call(channel, GetMethod(), deadline_, request_id_);
    const Going going(*this, call);
    if (call.Write(EncodeGet(id, at, range.end - at), true)) {
      for (grpc::ByteBuffer message; call.Read(message); message.Clear()) {
        // An invalid message ends the call: it is cancelled at the end of this block.
        ASSIGN_OR_RETURN(const std::size_t bytes, DecodeChunk(message, at, to.subspan(at, range.end - at)));
        at += bytes;
        Moved(static_cast<std::ptrdiff_t>(bytes));
        if (Interrupted()) call.Cancel();
      }
    }
    RETURN_IF_ERROR(call.Finish());
    if (at == range.end) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("the server's elements end at byte ", at, " of ", range.end));
  });
  // Another channel starts the range from its beginning.
  if (!status.ok()) Moved(-static_cast<std::ptrdiff_t>(at - range.begin));
  return status;
}

void Transfer::Moved(std::ptrdiff_t bytes) {
  if (!progress_) return;
  const std::lock_guard lock(progress_mutex_);
  moved_ += bytes;
  progress_(static_cast<std::size_t>(moved_));
}

}  // namespace warpline::client
