#include "server/device/completion.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "kernels/gpu/status.h"

namespace warpline {
namespace {

using Clock = std::chrono::steady_clock;

// How long the thread spins after the last completion. A client on this machine can get its answer and send
// the next request in that time.
constexpr auto kIdleSpin = std::chrono::microseconds(300);
// A job that takes longer than kBusySpin moves megabytes, so from then on the thread naps between queries. A
// nap lasts a fiftieth of the time for which no job has ended, and kNap at most. The end of a job is
// therefore noticed late by about a fiftieth of the time that it took, and never by more than 20 us.
constexpr auto kBusySpin = std::chrono::microseconds(200);
constexpr auto kNap = std::chrono::microseconds(20);
constexpr int kNapShare = 50;

}  // namespace

Completion::Completion(int device, ContextLost context_lost)
    : device_(device), context_lost_(std::move(context_lost)) {
  const unsigned workers = std::clamp(std::thread::hardware_concurrency() / 4, 1u, 4u);
  for (unsigned i = 0; i < workers; ++i) workers_.emplace_back([this] { Work(); });
  thread_ = std::thread([this] { Loop(); });
}

Completion::~Completion() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  arrived_.fetch_add(1, std::memory_order_release);
  thread_.join();
  {
    const std::lock_guard<std::mutex> lock(work_mutex_);
    work_ended_ = true;
  }
  work_changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Completion::Watch(cudaEvent_t event, Callback callback) {
  outstanding_.fetch_add(1, std::memory_order_relaxed);
  {
    MutexLock lock(&mutex_);
    arrivals_.push_back({event, std::move(callback), absl::OkStatus()});
  }
  arrived_.fetch_add(1, std::memory_order_release);
}

void Completion::ReportError(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return;
  ContextLost tell;
  {
    MutexLock lock(&mutex_);
    tell = std::exchange(context_lost_, nullptr);
  }
  if (tell) tell(status);
}

void Completion::TakeArrivals(bool may_sleep) {
  MutexLock lock(&mutex_);
  if (may_sleep) mutex_.Await([this] { return HasArrivals(); });
  std::move(arrivals_.begin(), arrivals_.end(), std::back_inserter(in_flight_));
  arrivals_.clear();
  stopping_seen_ = stopping_;
}

bool Completion::Poll() {
  for (std::size_t i = 0; i < in_flight_.size();) {
    const cudaError_t state = cudaEventQuery(in_flight_[i].event);
    if (state == cudaErrorNotReady) {
      ++i;
      continue;
    }
    Watched watched = std::move(in_flight_[i]);
    in_flight_.erase(in_flight_.begin() + static_cast<std::ptrdiff_t>(i));
    watched.status = gpu::ToStatus(state, "running a job");
    ReportError(watched.status);
    if (in_flight_.empty()) {  // this thread has nothing else to do, so a hand-over would only cost time
      CallBack(std::move(watched));
    } else {
      {
        const std::lock_guard<std::mutex> lock(work_mutex_);
        work_.push_back(std::move(watched));
      }
      work_changed_.notify_one();
    }
    return true;
  }
  return false;
}

void Completion::CallBack(Watched watched) {
  watched.callback(watched.status);
  // The destructor waits for this count, so whatever the callback holds must be destroyed before it drops.
  watched.callback = nullptr;
  outstanding_.fetch_sub(1, std::memory_order_release);
}

void Completion::Work() {
  cudaSetDevice(device_);
  for (;;) {
    Watched watched;
    {
      std::unique_lock<std::mutex> lock(work_mutex_);
      work_changed_.wait(lock, [this] { return !work_.empty() || work_ended_; });
      if (work_.empty()) return;
      watched = std::move(work_.front());
      work_.pop_front();
    }
    CallBack(std::move(watched));
  }
}

void Completion::Loop() {
  prctl(PR_SET_TIMERSLACK, 1000);  // nanoseconds; with the default of 50 us a nap of 20 us would last 70 us
  cudaSetDevice(device_);
  int seen = 0;
  Clock::time_point last_event = Clock::now();
  // A callback may watch a further event. So the loop ends when the last callback has returned, not when the
  // last event has been seen.
  while (!stopping_seen_ || outstanding_.load(std::memory_order_acquire) > 0) {
    const int arrived = arrived_.load(std::memory_order_acquire);
    const auto quiet = Clock::now() - last_event;
    if (arrived != seen || (in_flight_.empty() && quiet > kIdleSpin)) {
      TakeArrivals(/*may_sleep=*/arrived == seen);
      seen = arrived_.load(std::memory_order_acquire);
      // Events that arrived between the two lines above are found by this call or by the next check of the
      // counter. No event has to wait for a later arrival.
      TakeArrivals(/*may_sleep=*/false);
      last_event = Clock::now();
    }
    if (in_flight_.empty()) {
      if (stopping_seen_) std::this_thread::sleep_for(kNap);  // a worker's callback is still running
      continue;
    }
    if (Poll()) {
      last_event = Clock::now();
    } else if (const auto busy = Clock::now() - last_event; busy > kBusySpin) {
      std::this_thread::sleep_for(std::min<Clock::duration>(kNap, busy / kNapShare));
    }
  }
}

}  // namespace warpline
