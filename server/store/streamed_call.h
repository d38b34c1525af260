// Calls whose large arrays are transferred outside their messages: operands that other calls put, and results
// that other calls get.
#ifndef WARPLINE_SERVER_STORE_STREAMED_CALL_H_
#define WARPLINE_SERVER_STORE_STREAMED_CALL_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/base/owner.h"
#include "server/memory/buffer.h"
#include "server/observe/metrics.h"
#include "server/schedule/admission.h"
#include "server/schedule/fair_budget.h"
#include "server/store/byte_ranges.h"

namespace warpline {

class StreamedCalls;

// The state that all transfers of one such call share. It lasts from the announcement of the transfers until
// the last result has been dropped. Thread-safe.
class StreamedCall {
 public:
  // Within each send timeout this many bytes must move that have not moved before: 1 MiB, and at least a 32nd
  // of the memory that the call holds. So even the slowest client returns the memory after 32 send timeouts
  // for its uploads and 32 for its results. With the default of 30 s, 16 minutes for 1 GiB are 9 Mbit/s.
  static constexpr std::size_t kMinProgress = std::size_t{1} << 20;
  static constexpr std::size_t kProgressShare = 32;
  // Host memory of one transfer, in chunks: one chunk is received while the other is copied to the device.
  static constexpr std::size_t kChunksOfWindow = 2;
  // docs/benchmarks/2026-11-27-h200-streaming.md: more than 8 connections are no faster.
  static constexpr std::size_t kMaxWindows = 8;

  // The events of a call that waits for its uploads.
  struct Events {
    std::function<void()> progress;  // called under a lock: it must not call the StreamedCall
    std::function<void()> complete;  // the last byte has arrived; called once
    std::function<void()> give_up;   // EndIdle: nothing arrives, and the server drains
  };

  ~StreamedCall();
  StreamedCall(const StreamedCall&) = delete;
  StreamedCall& operator=(const StreamedCall&) = delete;

  // The call now waits for `uploads` uploads, at least one.
  void Await(std::size_t uploads, Events events);
  // Ends the wait. After this returns there are no more events.
  void StopWaiting();
  std::size_t min_progress() const { return min_progress_; }
  // Bytes of an upload have arrived. `completes`: they were its last ones.
  void OnArrived(std::size_t bytes, bool completes);
  // Bytes that had arrived no longer count, because the transfer of their range did not complete.
  void OnTakenBack(std::size_t bytes);
  // Returns how many bytes of uploads have arrived.
  std::size_t arrived() const;

  // Counts a further result, and returns its number.
  std::size_t AddResult();
  // A range of a result has been sent to the client.
  void OnSent(std::size_t result, const ByteRange& range);
  // Returns when the results last made enough progress. All of them expire together, their lease after this
  // time.
  MonotonicTime progressed() const;
  // Marks the results as expired, which also ends their transfers.
  void Expire();
  bool has_expired() const;

  // Returns when any part of the call was last used.
  MonotonicTime used() const;
  void Use();

  // The maximum number of transfers at one time.
  std::size_t windows() const { return windows_; }
  // RESOURCE_EXHAUSTED with a delay if that many are in progress.
  absl::Status TakeWindow();
  void ReturnWindow();
  // Allows no more transfers. The memory and the ticket that were reserved for transfers are returned when
  // the last transfer has ended. Called before a call without streamed results is answered.
  void EndTransfers();

 private:
  friend class StreamedCalls;
  StreamedCall(StreamedCalls& calls, std::size_t bytes, std::size_t windows, FairBudget::Part part,
               Ticket ticket);

  void ReturnBudget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the function that gives up the call if it waits and nothing of it has moved since `since`; else
  // null.
  std::function<void()> GiveUpIfIdle(MonotonicTime since) const;
  std::function<void()> GiveUpIfWaiting() const;

  StreamedCalls& calls_;
  const std::size_t min_progress_;
  const std::size_t windows_;
  mutable Mutex mutex_;
  bool transfers_end_ ABSL_GUARDED_BY(mutex_) = false;
  MonotonicTime used_ ABSL_GUARDED_BY(mutex_) = MonotonicClock::now();
  std::size_t windows_used_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t incomplete_ ABSL_GUARDED_BY(mutex_) = 0;  // uploads
  std::size_t arrived_ ABSL_GUARDED_BY(mutex_) = 0;     // bytes
  std::size_t seen_ ABSL_GUARDED_BY(mutex_) = 0;        // value of arrived_ at the last progress
  std::optional<Events> events_ ABSL_GUARDED_BY(mutex_);
  std::vector<ByteRanges> sent_ ABSL_GUARDED_BY(mutex_);  // one for each result
  std::size_t sent_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t sent_seen_ ABSL_GUARDED_BY(mutex_) = 0;  // value of sent_bytes_ at the last progress
  MonotonicTime progressed_ ABSL_GUARDED_BY(mutex_) = MonotonicClock::now();
  bool has_expired_ ABSL_GUARDED_BY(mutex_) = false;
  // Destroyed last: code that waits for all tickets may then destroy what the call uses.
  FairBudget::Part part_ ABSL_GUARDED_BY(mutex_);
  Ticket ticket_ ABSL_GUARDED_BY(mutex_);
};

// All streamed calls, and the memory that they share. Thread-safe. Outlives its calls and their memory.
class StreamedCalls {
 public:
  struct Options {
    std::vector<std::size_t> device_bytes;  // of all calls together, on each device
    std::size_t chunk_bytes = 0;            // of windows
  };
  using AllocateMemory = std::function<absl::StatusOr<Buffer>(int device, std::size_t bytes)>;
  StreamedCalls(const Options& options, AllocateMemory allocate, FairBudget& transfers, Admission& admission,
                Metrics& metrics);

  // A call with memory for each of its arrays, all on one device.
  struct Opened {
    std::shared_ptr<StreamedCall> call;
    std::vector<Buffer> memory;
    int device = 0;
  };
  // Opens a call on device `preferred` if it has room, otherwise on the device with the most room.
  // RESOURCE_EXHAUSTED if there is not enough room, with a retry delay if other calls use the room.
  // UNAVAILABLE once the server drains.
  absl::StatusOr<Opened> Open(const Caller& caller, std::optional<int> preferred,
                              std::span<const std::size_t> bytes);

  // The maximum bytes of all arrays of one call of this claimant; 0 if it may have none.
  std::size_t MaxBytesOf(const Claimant& claimant) const;
  // After this no call is opened.
  void Drain();
  // Gives up calls that wait for uploads and have received nothing for `idle`.
  void EndIdle(absl::Duration idle);
  // Gives up all calls that wait for uploads.
  void EndWaiting();
  // Returns the number of calls.
  std::size_t count() const;

 private:
  friend class StreamedCall;
  int DeviceFor(std::optional<int> preferred, std::size_t bytes) const;
  // Gives up the calls for which `ending` returns a function.
  void End(const std::function<std::function<void()>(const StreamedCall&)>& ending);
  absl::StatusOr<std::shared_ptr<StreamedCall>> TakeWindows(const Caller& caller, std::size_t bytes);

  const Options options_;
  const AllocateMemory allocate_;
  FairBudget& transfers_;
  Admission& admission_;
  std::deque<FairBudget> devices_;  // one for each device, in bytes
  std::vector<Gauge> bytes_;
  mutable Mutex mutex_;
  bool drains_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<StreamedCall*> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_STORE_STREAMED_CALL_H_
