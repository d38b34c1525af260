#include "client/bench/bench.h"

#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "client/bench/work.h"
#include "client/cli/command_line.h"
#include "client/src/methods.h"
#include "client/src/raw_channel.h"
#include "client/src/tensor_codec.h"
#include "client/src/tls_probe.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

using Clock = std::chrono::steady_clock;

// An open loop gives up if it is still sending this long after the end of its schedule. The requests that are
// left are reported as not sent.
constexpr std::chrono::milliseconds kGrace(50);
// The time that a closed loop leaves a slot idle after UNAVAILABLE. Without a connection such errors come at
// once, so the loop would spin and measure the speed of failing.
constexpr std::chrono::milliseconds kRest(100);

// A connection, its thread, and the counts of that thread.
struct Line {
  explicit Line(const CommonFlags& common)
      : channel(common.server, {.own_connection = true, .tls = common.tls, .token = common.token}) {}
  BenchStats stats;
  Clock::time_point last_end;
  RawChannel channel;  // last member: its destructor waits for callbacks, which use the others
};

// A request in flight, or a free slot for one.
struct Slot {
  Line* line = nullptr;
  // Allocated at first use and not cleared: an open loop has many slots that it never uses.
  std::unique_ptr<char[]> result;
  Clock::time_point start;  // in an open loop: when the request was due
  bool measured = false;
};

class Run {
 public:
  Run(const BenchFlags& flags, const BenchWork& work) : flags_(flags), work_(work) {}

  absl::StatusOr<BenchReport> Measure();

 private:
  void Send(Slot& slot);
  void Finish(Slot& slot, const absl::StatusOr<grpc::ByteBuffer>& response);
  // Called when the request of the slot is over.
  void GoOn(Slot& slot, const absl::Status& status);
  void Drop(Slot& slot, const std::string& id);
  std::size_t IndexOf(const Slot& slot) const { return static_cast<std::size_t>(&slot - slots_.data()); }
  // Functions of the closed loop.
  void SendNext(Slot& slot);
  void Rest(Slot& slot);
  void SendRested();  // until all slots are free
  // Functions of the open loop.
  std::int64_t SendAllDue();  // returns how many due requests were never sent
  std::int64_t SendDue(std::mt19937_64& random, Clock::time_point from, Clock::time_point until);
  Slot& Acquire();
  bool MayStart(Slot& slot, Clock::time_point start);
  void Release(Slot& slot);

  const BenchFlags& flags_;
  const BenchWork& work_;
  Clock::time_point measure_from_, measure_until_;
  std::size_t result_bytes_ = 0;        // of each response
  std::atomic<std::int64_t> left_ = 0;  // of flags_.requests
  std::mutex mutex_;
  std::condition_variable released_;
  std::vector<Slot*> free_;                                  // guarded by mutex_
  std::deque<std::pair<Clock::time_point, Slot*>> resting_;  // each until its time; guarded by mutex_
  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<Line>> lines_;  // declared after the slots, which the callbacks use
};

// Returns whether the slot may start a request at `start`; false at the end. Sets slot.measured if the
// request counts.
bool Run::MayStart(Slot& slot, Clock::time_point start) {
  slot.start = start;
  slot.measured = start >= measure_from_;
  if (!slot.measured) return true;
  if (flags_.requests > 0) return left_.fetch_sub(1, std::memory_order_relaxed) > 0;
  return start < measure_until_;
}

void Run::Send(Slot& slot) {
  if (slot.result == nullptr) {
    slot.result = std::make_unique_for_overwrite<char[]>(std::max<std::size_t>(result_bytes_, 1));
  }
  // The lambda captures two pointers, which std::function stores without an allocation.
  slot.line->channel.CallAsync(
      work_.method(), work_.Message(IndexOf(slot)), absl::Now() + flags_.common.deadline, "",
      [this, &slot](const absl::StatusOr<grpc::ByteBuffer>& response) { Finish(slot, response); });
}

// Runs on the thread of the slot's line.
void Run::Finish(Slot& slot, const absl::StatusOr<grpc::ByteBuffer>& response) {
  const absl::StatusOr<BenchWork::Answer> answer =
      response.ok() ? work_.Decode(*response, IndexOf(slot), {slot.result.get(), result_bytes_})
                    : absl::StatusOr<BenchWork::Answer>(response.status());
  if (slot.measured) {
    Line& line = *slot.line;
    line.last_end = Clock::now();
    if (answer.ok()) {
      line.stats.latencies.Record(line.last_end - slot.start);
      line.stats.bytes_in += static_cast<std::int64_t>(work_.bytes_in());
      line.stats.bytes_out += static_cast<std::int64_t>(answer->bytes);
    } else {
      line.stats.AddError(answer.status());
    }
  }
  if (answer.ok() && !answer->kept.empty()) return Drop(slot, answer->kept);
  GoOn(slot, answer.status());
}

// The slot waits for the drop. So the server never keeps more results than requests may be in flight.
void Run::Drop(Slot& slot, const std::string& id) {
  slot.line->channel.CallAsync(DropMethod(), EncodeDrop(id), absl::Now() + flags_.common.deadline, "",
                               [this, &slot](const absl::StatusOr<grpc::ByteBuffer>& response) {
                                 if (slot.measured && !response.ok()) {
                                   slot.line->stats.AddError(response.status());
                                 }
                                 GoOn(slot, response.status());
                               });
}

void Run::GoOn(Slot& slot, const absl::Status& status) {
  if (flags_.rate) return Release(slot);
  if (absl::IsUnavailable(status)) return Rest(slot);
  SendNext(slot);
}

void Run::SendNext(Slot& slot) {
  if (MayStart(slot, Clock::now())) return Send(slot);
  Release(slot);
}

void Run::Rest(Slot& slot) {
  const std::lock_guard lock(mutex_);
  resting_.emplace_back(Clock::now() + kRest, &slot);
  released_.notify_one();
}

void Run::SendRested() {
  std::unique_lock lock(mutex_);
  while (free_.size() < slots_.size()) {
    if (resting_.empty()) {
      released_.wait(lock);
      continue;
    }
    const auto [until, slot] = resting_.front();
    if (Clock::now() < until) {
      released_.wait_until(lock, until);
      continue;
    }
    resting_.pop_front();
    lock.unlock();
    SendNext(*slot);
    lock.lock();
  }
}

void Run::Release(Slot& slot) {
  const std::lock_guard lock(mutex_);
  free_.push_back(&slot);
  released_.notify_one();
}

// Sends the warm-up, then the measured requests. Each has its own schedule, and warm-up requests that could
// not be sent in time are skipped. With a common schedule and a rate that is too high, the warm-up would use
// up the time of the measurement, and nothing would be measured.
std::int64_t Run::SendAllDue() {
  ::prctl(PR_SET_TIMERSLACK, 1);  // ns; the default of 50 us would show in the latencies
  std::mt19937_64 random(1);
  SendDue(random, Clock::now(), measure_from_);
  return SendDue(random, measure_from_, flags_.requests > 0 ? Clock::time_point::max() : measure_until_);
}

std::int64_t Run::SendDue(std::mt19937_64& random, Clock::time_point from, Clock::time_point until) {
  std::exponential_distribution<double> gap(*flags_.rate);
  double due_seconds = 0;
  while (true) {
    // The times are summed in floating point, so that rounding to clock ticks does not change the rate.
    due_seconds += flags_.poisson ? gap(random) : 1 / *flags_.rate;
    const Clock::time_point due =
        from + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(due_seconds));
    if (due >= until) return 0;
    std::this_thread::sleep_until(due);
    Slot& slot = Acquire();
    const bool late = Clock::now() - kGrace >= until;
    if (late || !MayStart(slot, due)) {
      Release(slot);
      const double behind = std::chrono::duration<double>(until - due).count();
      return late ? std::max<std::int64_t>(1, std::llround(behind * *flags_.rate)) : 0;
    }
    Send(slot);
  }
}

Slot& Run::Acquire() {
  std::unique_lock lock(mutex_);
  released_.wait(lock, [&] { return !free_.empty(); });
  Slot* slot = free_.back();
  free_.pop_back();
  return *slot;
}

absl::StatusOr<BenchReport> Run::Measure() {
  for (int i = 0; i < flags_.channels; ++i) lines_.push_back(std::make_unique<Line>(flags_.common));
  // Sends one request on each line, so that all lines are connected.
  for (const std::unique_ptr<Line>& line : lines_) {
    const absl::StatusOr<std::size_t> verified = work_.Verify(line->channel, flags_.common.deadline);
    if (!verified.ok()) {
      return WithTlsProblem(verified.status(), flags_.common.server, flags_.common.tls,
                            absl::Now() + flags_.common.deadline);
    }
    result_bytes_ = *verified;
  }
  slots_.resize(static_cast<std::size_t>(flags_.concurrency));
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].line = lines_[i % lines_.size()].get();
  left_ = flags_.requests;
  measure_from_ = Clock::now() + absl::ToChronoNanoseconds(flags_.warmup);
  measure_until_ = measure_from_ + absl::ToChronoNanoseconds(flags_.duration);
  BenchReport report{.title = flags_.Title(),
                     .transport = flags_.Transport(),
                     .resident = flags_.resident,
                     .keep = flags_.keep};
  if (!flags_.rate) {
    for (Slot& slot : slots_) SendNext(slot);
  } else {
    {
      const std::lock_guard lock(mutex_);
      for (Slot& slot : slots_) free_.push_back(&slot);
    }
    report.unsent = SendAllDue();
  }
  SendRested();  // in an open loop, this only waits
  Clock::time_point end = measure_from_;
  for (const std::unique_ptr<Line>& line : lines_) {
    end = std::max(end, line->last_end);
    report.stats.Merge(line->stats);
  }
  report.elapsed = end - measure_from_;
  return report;
}

absl::Status RunBench(const BenchFlags& parsed, const CommonFlags& common) {
  ASSIGN_OR_RETURN(const BenchFlags flags, parsed.Completed(common));
  ASSIGN_OR_RETURN(const BenchReport report, Bench(flags));
  std::fputs(FormatReport(report, common.json).c_str(), stdout);
  return Verdict(report);
}

}  // namespace

absl::StatusOr<BenchReport> Bench(const BenchFlags& flags) {
  ASSIGN_OR_RETURN(const BenchWork work, BenchWork::Create(flags));
  Run run(flags, work);
  return run.Measure();
}

void AddBench(CommandLine& line) {
  auto [app, flags, common] =
      line.Add("bench", "measure requests per second, throughput and latency",
               "bench --op gemm --shape 512x512x512 --channels 4 --concurrency 16 --duration 2s", RunBench);
  flags.AddTo(app, common);
}

}  // namespace warpline::client
