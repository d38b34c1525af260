// Runs programs, whichever way their arrays travel.
#ifndef WARPLINE_CLIENT_SRC_RUNNER_H_
#define WARPLINE_CLIENT_SRC_RUNNER_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/call.h"
#include "client/src/large_arrays.h"
#include "client/src/raw_channel.h"
#include "client/src/result_type.h"
#include "client/src/stream_threads.h"
#include "warpline/options.h"
#include "warpline/requests.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// Counts calls that nobody waits for, until the last has let go of all that it uses.
class CallsInFlight {
 public:
  // One call, for as long as what it returns exists.
  std::shared_ptr<void> Count();
  void AwaitNone();

 private:
  void Add(std::ptrdiff_t change);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::ptrdiff_t count_ = 0;
};

// A call is tried in messages and shared memory, or, if its arrays are large, in ranges: they travel apart
// from the message (Streaming). What a server refuses one way may go the other. Thread-safe.
class Runner {
 public:
  // The limits that a server tells.
  using GetLimits = std::function<absl::StatusOr<v1::Limits>(absl::Time deadline)>;
  Runner(const CallSite& site, const ClientOptions& options, GetLimits get_limits);
  // Waits for the calls that nobody waits for; no other may begin.
  ~Runner() { calls_.AwaitNone(); }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  absl::StatusOr<RunResult> Run(const RunArgs& args, absl::Duration timeout, const CallOptions& options);
  void RunAsync(const RunArgs& args, absl::Duration timeout, const CallOptions& options, Call::Done done);

 private:
  // How far a call in ranges came: the server has accepted it, or computed it.
  enum class Stage { kAsking, kAccepted, kComputed };

  // A call that names tensors, or makes one, must meet the server that the client's other calls meet.
  void BindIfTensors(const RunArgs& args, const CallOptions& options);
  // All arrays that are neither in regions nor uploads travel in the messages. `transmit` sends the uploads.
  absl::StatusOr<RunResult> RunInMessages(const RunArgs& args, ResultTypes types, absl::Time deadline,
                                          const CallOptions& options,
                                          const RawChannel::Transmit& transmit = nullptr);
  absl::StatusOr<RunResult> RunInRanges(const RunArgs& args, const LargeArrays& large, absl::Time deadline,
                                        const CallOptions& options);
  // One attempt of that.
  absl::StatusOr<RunResult> StreamOnce(const RunArgs& given, const LargeArrays& large, absl::Time deadline,
                                       const CallOptions& options, Stage& stage);
  // The same while other calls of this client have room on the server.
  absl::StatusOr<RunResult> StreamWhenThereIsRoom(const RunArgs& args, const LargeArrays& large,
                                                  absl::Time deadline, const CallOptions& options,
                                                  Stage& stage);
  void RunInRangesOnThread(const RunArgs& args, LargeArrays large, absl::Time deadline,
                           const CallOptions& options, Call::Done done);
  // True for what a call ends with that the pool was to carry, and did not: the server shares no memory, or
  // there was no room.
  bool IsTooLargeForPool(const absl::Status& status) const;
  // The most bytes that operands, or results, may have together in a message.
  absl::StatusOr<std::size_t> InlineLimit(absl::Time deadline) const;
  // False only if the server says that it takes no uploads.
  bool TakesUploads(absl::Time deadline) const;

  const CallSite site_;
  const std::size_t stream_from_bytes_;
  const int channels_;
  const GetLimits get_limits_;
  std::atomic<int> holding_room_ = 0;  // calls in ranges that the server has accepted
  CallsInFlight calls_;
  StreamThreads streams_;  // for calls in ranges that nobody waits for
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_RUNNER_H_
