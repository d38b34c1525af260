// Transfers elements to or from a resident tensor: in ranges, over several channels at the same time.
#ifndef WARPLINE_CLIENT_SRC_TRANSFER_H_
#define WARPLINE_CLIENT_SRC_TRANSFER_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/connection.h"
#include "client/src/stream_call.h"
#include "warpline/array.h"
#include "warpline/tensor.h"

namespace warpline::client {

inline constexpr int kMaxChannels = 64;

// Bytes of a tensor's elements, [begin, end).
struct ElementRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(const ElementRange&, const ElementRange&) = default;
};

// Returns the number of channels for this many bytes; `wanted` is as in PutOptions::channels. InvalidArgument
// if `wanted` is out of range.
absl::StatusOr<int> ChannelsFor(int wanted, std::size_t bytes);
// Returns the bytes of each call. Each range has whole messages, except the last one, and at most 64 MiB,
// which is what a failed call sends again. Splits the messages evenly among the channels. No bytes give no
// ranges.
std::vector<ElementRange> RangesOf(std::size_t bytes, int channels);

// One transfer. All its calls share the deadline and the request id. Call only one of Put and Get, and only
// once. The first error that cannot be retried cancels all calls, and is returned when they are over.
class Transfer {
 public:
  Transfer(Connection& connection, absl::Time deadline, std::string request_id, Progress progress);

  // Writes the elements of the array, without the padding of its rows, to the tensor.
  absl::Status Put(const std::string& id, const ConstArray& array, std::size_t bytes, int channels);
  // Same for an upload of a call. If a channel is lost, its range goes over another one. The server reports
  // at the end of the call whether it has all bytes. So a range that may have arrived counts as sent. When
  // the call has `ended`, the transfer ends too.
  absl::Status PutUpload(const std::string& id, const ConstArray& array, std::size_t bytes, int channels,
                         const std::stop_token& ended);
  // Writes the tensor's elements to `to`, which has their size.
  absl::Status Get(const std::string& id, std::span<std::byte> to, int channels);
  // Same for a result of a call. If a channel is lost, its range goes over another one.
  absl::Status GetResult(const std::string& id, std::span<std::byte> to, int channels) {
    of_call_ = true;
    return Get(id, to, channels);
  }

 private:
  using Move = std::function<absl::Status(RawChannel&, ElementRange)>;
  class Going;

  // Calls `move` with every range, from as many threads as there are channels.
  absl::Status MoveAll(std::deque<ElementRange> ranges, int channels, const Move& move);
  void MoveSome(std::size_t channel, const Move& move);
  // Gives the range of a lost channel to another channel, if one is in use.
  bool LeaveToOthers(ElementRange range);
  // Returns the server's delay if a refusal only means that fewer channels must be used: other ranges of this
  // client are moving, or have just ended. This does not count as a failed attempt.
  std::optional<absl::Duration> DelayForRoom(const absl::Status& status, int& refusals);
  // Makes a call of one range until it succeeds.
  absl::Status Retry(Attempts& attempts, const std::function<absl::Status()>& attempt);
  absl::Status PutRange(RawChannel& channel, const std::string& id, const ConstArray& array,
                        ElementRange range);
  absl::Status GetRange(RawChannel& channel, const std::string& id, std::span<std::byte> to,
                        ElementRange range);
  // Checks after InvalidArgument whether a range that was sent again had arrived before.
  absl::Status CheckDoubt(const std::string& id);
  // Adds to the number of transferred bytes; `bytes` may be negative.
  void Moved(std::ptrdiff_t bytes);
  void Fail(const absl::Status& status);

  Connection& connection_;
  const absl::Time deadline_;
  const std::string request_id_;
  const Progress progress_;

  std::mutex mutex_;
  std::condition_variable stopping_;
  absl::Status failure_;  // the first error
  absl::Status doubt_;    // the error of a range that may have been written after all
  std::deque<ElementRange> ranges_;
  bool has_several_ = false;     // several channels
  std::size_t moving_ = 0;       // threads that move ranges
  bool of_call_ = false;         // ranges may move to other channels
  bool has_left_ = false;        // some range was left to another channel
  std::set<StreamCall*> calls_;  // in flight

  std::mutex progress_mutex_;
  std::ptrdiff_t moved_ = 0;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_TRANSFER_H_
