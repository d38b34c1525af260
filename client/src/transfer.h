// Elements on their way to a resident tensor or from it: in ranges, over several channels at the same time.
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

// How many channels carry so many bytes; `wanted` is as PutOptions::channels. InvalidArgument for a number
// that it cannot be.
absl::StatusOr<int> ChannelsFor(int wanted, std::size_t bytes);
// The bytes of each call: whole messages, but for the end, at most 64 MiB, which is what is sent again if a
// call fails, and as many calls as there are channels or more. No bytes are no range.
std::vector<ElementRange> RangesOf(std::size_t bytes, int channels);

// One transfer, of which all calls share deadline and request id. Only one of Put and Get may be called,
// once. The first error that is not worth another attempt cancels all calls, and is returned when they are
// over.
class Transfer {
 public:
  Transfer(Connection& connection, absl::Time deadline, std::string request_id, Progress progress);

  // The elements of the array, without the padding of its rows, become those of the tensor.
  absl::Status Put(const std::string& id, const ConstArray& array, std::size_t bytes, int channels);
  // The same for an upload of a call, in which a range of a channel that is lost goes over another one. The
  // server says by the call's end whether it has all bytes, so a range that may have arrived counts as if it
  // had. When the call has `ended`, this does.
  absl::Status PutUpload(const std::string& id, const ConstArray& array, std::size_t bytes, int channels,
                         const std::stop_token& ended);
  // The tensor's elements are written to `to`, which has their size.
  absl::Status Get(const std::string& id, std::span<std::byte> to, int channels);
  // The same for a result of a call, as PutUpload.
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
  // A channel is lost: the range goes over another one, if one is in use.
  bool LeaveToOthers(ElementRange range);
  // Returns the server's delay after a refusal that means no more than fewer channels, as other ranges of
  // ours are moving, or have just ended. It is no attempt that failed.
  std::optional<absl::Duration> DelayForRoom(const absl::Status& status, int& refusals);
  // Makes a call of one range until it succeeds.
  absl::Status Retry(Attempts& attempts, const std::function<absl::Status()>& attempt);
  absl::Status PutRange(RawChannel& channel, const std::string& id, const ConstArray& array,
                        ElementRange range);
  absl::Status GetRange(RawChannel& channel, const std::string& id, std::span<std::byte> to,
                        ElementRange range);
  // Resolves the doubt after InvalidArgument of a range that was sent again.
  absl::Status CheckDoubt(const std::string& id);
  // Adds to the bytes that have travelled; `bytes` may be negative.
  void Moved(std::ptrdiff_t bytes);
  void Fail(const absl::Status& status);

  Connection& connection_;
  const absl::Time deadline_;
  const std::string request_id_;
  const Progress progress_;

  std::mutex mutex_;
  std::condition_variable stopping_;
  absl::Status failure_;  // the first
  absl::Status doubt_;    // of a range that may have been written all the same
  std::deque<ElementRange> ranges_;
  bool has_several_ = false;     // channels
  std::size_t moving_ = 0;       // threads
  bool of_call_ = false;         // ranges may go over other channels
  bool has_left_ = false;        // some range to others
  std::set<StreamCall*> calls_;  // in flight

  std::mutex progress_mutex_;
  std::ptrdiff_t moved_ = 0;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_TRANSFER_H_
