// Runs programs, for all ways in which their arrays travel.
#ifndef WARPLINE_CLIENT_SRC_RUNNER_H_
#define WARPLINE_CLIENT_SRC_RUNNER_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/call.h"
#include "client/src/condition_variable.h"
#include "client/src/large_arrays.h"
#include "client/src/raw_channel.h"
#include "client/src/result_type.h"
#include "client/src/stream_threads.h"
#include "warpline/options.h"
#include "warpline/requests.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// Counts asynchronous calls, until the last one has released everything that it uses.
class CallsInFlight {
 public:
  // Counts one call, until the returned object is destroyed.
  std::shared_ptr<void> Count();
  void AwaitNone();

 private:
  void Add(std::ptrdiff_t change);

  std::mutex mutex_;
  ConditionVariable changed_;
  std::ptrdiff_t count_ = 0;
};

// A call is tried in messages and shared memory, or, if its arrays are large, in ranges: then they travel
// apart from the message (Streaming). If a server refuses one way, the other is tried if it may work.
// Thread-safe.
class Runner {
 public:
  // Gets the limits that the server reports.
  using GetLimits = std::function<absl::StatusOr<v1::Limits>(absl::Time deadline)>;
  Runner(const CallSite& site, const ClientOptions& options, GetLimits get_limits);
  // Waits for the asynchronous calls. No other call may begin.
  ~Runner() { calls_.AwaitNone(); }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  absl::StatusOr<RunResult> Run(const RunArgs& args, absl::Duration timeout, const CallOptions& options);
  void RunAsync(const RunArgs& args, absl::Duration timeout, const CallOptions& options, Call::Done done);

 private:
  // The progress of a call in ranges: the server has been asked, has accepted it, or has computed it.
  enum class Stage { kAsking, kAccepted, kComputed };

  // A call that names or makes tensors must reach the same server as the client's other calls.
  void BindIfTensors(const RunArgs& args, const CallOptions& options);
  // All arrays except those in regions and uploads travel in the messages. `transmit` sends the uploads.
  absl::StatusOr<RunResult> RunInMessages(const RunArgs& args, ResultTypes types, absl::Time deadline,
                                          const CallOptions& options,
                                          const RawChannel::Transmit& transmit = nullptr);
  absl::StatusOr<RunResult> RunInRanges(const RunArgs& args, const LargeArrays& large, absl::Time deadline,
                                        const CallOptions& options);
  // One attempt of RunInRanges.
  absl::StatusOr<RunResult> StreamOnce(const RunArgs& given, const LargeArrays& large, absl::Time deadline,
                                       const CallOptions& options, Stage& stage);
  // Same, but tries again while other calls of this client use room on the server.
  absl::StatusOr<RunResult> StreamWhenThereIsRoom(const RunArgs& args, const LargeArrays& large,
                                                  absl::Time deadline, const CallOptions& options,
                                                  Stage& stage);
  void RunInRangesOnThread(const RunArgs& args, LargeArrays large, absl::Time deadline,
                           const CallOptions& options, Call::Done done);
  // True if the error means that the pool could not carry the arrays: the server shares no memory, or there
  // was no room.
  bool IsTooLargeForPool(const absl::Status& status) const;
  // The maximum total bytes of operands, or of results, in one message.
  absl::StatusOr<std::size_t> InlineLimit(absl::Time deadline) const;
  // False only if the server says that it does not accept uploads.
  bool TakesUploads(absl::Time deadline) const;

  const CallSite site_;
  const std::size_t stream_from_bytes_;
  const int channels_;
  const GetLimits get_limits_;
  std::atomic<int> holding_room_ = 0;  // calls in ranges that the server has accepted
  CallsInFlight calls_;
  StreamThreads streams_;  // for asynchronous calls in ranges
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_RUNNER_H_
