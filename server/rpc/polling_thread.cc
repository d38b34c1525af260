#include "server/rpc/polling_thread.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/time/time.h"
#include "server/rpc/completion_tag.h"

namespace warpline {
namespace {

using Clock = std::chrono::steady_clock;

constexpr absl::Duration kReliefPeriod = absl::Milliseconds(10);

// The minimum time for which a thread on demand looks, and the minimum of a nap. Shorter waits end late,
// because Linux may delay the timers of a thread by 50 us.
constexpr std::chrono::nanoseconds kShortest = std::chrono::microseconds(50);
// The longest nap. Threads reach it if they have only idle streams and stalled uploads.
constexpr std::chrono::nanoseconds kLongestNap = std::chrono::milliseconds(100);

// Returns the time after `wait`, by the clock that gRPC wants. absl::Now() notices only after up to two
// seconds that the wall clock was set. gRPC asks the kernel, and would wait too long by the time that the
// clock was set back.
std::chrono::system_clock::time_point WallTimeAfter(absl::Duration wait) {
  return std::chrono::system_clock::now() + absl::ToChronoNanoseconds(wait);
}

}  // namespace

PollingThread::PollingThread(std::unique_ptr<grpc::ServerCompletionQueue> queue, absl::Duration look,
                             Kind kind)
    : queue_(std::move(queue)),
      look_(absl::ToChronoNanoseconds(look)),
      thread_([this, kind] { kind == Kind::kSteady ? Loop() : LoopOnDemand(); }) {
  pthread_getcpuclockid(thread_.native_handle(), &cpu_clock_);
}

PollingThread::~PollingThread() {
  queue_->Shutdown();
  {
    MutexLock lock(&posted_mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void PollingThread::Proceed(void* tag, bool ok) {
  auto* const completed = static_cast<CompletionTag*>(tag);
#ifdef __SANITIZE_THREAD__
  // gRPC orders the code that made the tag before this thread, in a way that sanitizers cannot see. They can
  // see this.
  { const std::lock_guard<std::mutex> visible(one_at_a_time_); }
#endif
  if (!completed->takes_turns()) return completed->Proceed(ok);
  const std::lock_guard<std::mutex> lock(one_at_a_time_);
  completed->Proceed(ok);
}

bool PollingThread::TryPost(absl::AnyInvocable<void()> task) {
  MutexLock lock(&posted_mutex_);
  if (!awake_) return false;
  posted_.push_back(std::move(task));
  has_posted_.store(true, std::memory_order_relaxed);
  return true;
}

void PollingThread::Post(absl::AnyInvocable<void()> task) {
  MutexLock lock(&posted_mutex_);
  posted_.push_back(std::move(task));
  has_posted_.store(true, std::memory_order_relaxed);
}

void PollingThread::RunPosted() {
  if (!has_posted_.load(std::memory_order_relaxed)) return;
  std::vector<absl::AnyInvocable<void()>> tasks;
  {
    MutexLock lock(&posted_mutex_);
    tasks.swap(posted_);
    has_posted_.store(false, std::memory_order_relaxed);
  }
  const std::lock_guard<std::mutex> lock(one_at_a_time_);
  for (absl::AnyInvocable<void()>& task : tasks) task();
}

void PollingThread::BetweenTags(absl::FunctionRef<void()> function) {
  const std::lock_guard<std::mutex> lock(one_at_a_time_);
  function();
}

bool PollingThread::GoToSleep() {
  MutexLock lock(&posted_mutex_);
  awake_ = !posted_.empty();
  return !awake_;
}

void PollingThread::WakeUp() {
  MutexLock lock(&posted_mutex_);
  awake_ = true;
}

void PollingThread::Loop() {
  on_polling_thread_ = true;
  const gpr_timespec past = gpr_inf_past(GPR_CLOCK_MONOTONIC);
  void* tag = nullptr;
  bool ok = false;
  for (;;) {
    while (!GoToSleep()) RunPosted();
    if (!queue_->Next(&tag, &ok)) return;
    WakeUp();
    rounds_.fetch_add(1, std::memory_order_relaxed);
    Proceed(tag, ok);
    Clock::time_point until = Clock::now() + look_;
    for (;;) {
      RunPosted();
      if (look_.count() <= 0) break;
      const auto status = queue_->AsyncNext(&tag, &ok, past);
      rounds_.fetch_add(1, std::memory_order_relaxed);
      if (status == grpc::CompletionQueue::SHUTDOWN) return;
      if (status == grpc::CompletionQueue::GOT_EVENT) {
        Proceed(tag, ok);
        until = Clock::now() + look_;
      } else if (Clock::now() >= until) {
        break;
      }
    }
  }
}

bool PollingThread::Nap(std::chrono::nanoseconds quiet) {
  MutexLock lock(&posted_mutex_);
  const auto has_news = [this] { return !posted_.empty() || stopping_; };
  awake_ = false;
  bool news = true;
  if (calls_.load(std::memory_order_relaxed) == 0) {
    posted_mutex_.Await(has_news);
  } else {
    // So an event waits at most an eighth of the time that has passed since the last one.
    news = posted_mutex_.AwaitUntil(has_news, MonotonicClock::now() + std::clamp<std::chrono::nanoseconds>(
                                                                          quiet / 8, kShortest, kLongestNap));
  }
  awake_ = true;
  return news;
}

void PollingThread::LoopOnDemand() {
  on_polling_thread_ = true;
  const std::chrono::nanoseconds look = std::max(look_, kShortest);
  const gpr_timespec past = gpr_inf_past(GPR_CLOCK_MONOTONIC);
  void* tag = nullptr;
  bool ok = false;
  Clock::time_point last = Clock::now();  // time of the last event
  for (;;) {
    RunPosted();
    const auto status = queue_->AsyncNext(&tag, &ok, past);
    rounds_.fetch_add(1, std::memory_order_relaxed);
    if (status == grpc::CompletionQueue::SHUTDOWN) return;
    if (status == grpc::CompletionQueue::GOT_EVENT) Proceed(tag, ok);
    const Clock::time_point now = Clock::now();
    if (status == grpc::CompletionQueue::GOT_EVENT || (now - last >= look && Nap(now - last))) last = now;
  }
}

bool PollingThread::IsHeldUp() {
  timespec cpu{};
  if (clock_gettime(cpu_clock_, &cpu) != 0) return false;  // the thread has ended
  const std::int64_t cpu_ns = std::int64_t{cpu.tv_sec} * 1'000'000'000 + cpu.tv_nsec;
  const std::int64_t used_ns = cpu_ns - std::exchange(seen_cpu_ns_, cpu_ns);
  const std::uint64_t rounds = rounds_.load(std::memory_order_relaxed);
  const bool same = std::exchange(seen_rounds_, rounds) == rounds;
  // A sleeping thread uses no CPU time. A working one may have to share its core, so an eighth is enough.
  return same && used_ns > absl::ToInt64Nanoseconds(kReliefPeriod) / 8;
}

void PollingThread::StandIn() {
  void* tag = nullptr;
  bool ok = false;
  while (rounds_.load(std::memory_order_relaxed) == seen_rounds_) {
    RunPosted();
    if (queue_->AsyncNext(&tag, &ok, WallTimeAfter(kReliefPeriod)) != grpc::CompletionQueue::GOT_EVENT)
      return;
    Proceed(tag, ok);
  }
}

void PollingThread::Help(absl::Duration time) {
  void* tag = nullptr;
  bool ok = false;
  if (queue_->AsyncNext(&tag, &ok, WallTimeAfter(time)) == grpc::CompletionQueue::GOT_EVENT) Proceed(tag, ok);
}

Relief::Relief(std::vector<PollingThread*> threads)
    : threads_(std::move(threads)), thread_([this] { Loop(); }) {}

Relief::~Relief() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void Relief::Loop() {
  for (;;) {
    {
      MutexLock lock(&mutex_);
      if (mutex_.AwaitUntil([this] { return stopping_; }, After(kReliefPeriod))) return;
    }
    for (PollingThread* thread : threads_) {
      if (thread->IsHeldUp()) thread->StandIn();
    }
  }
}

}  // namespace warpline
