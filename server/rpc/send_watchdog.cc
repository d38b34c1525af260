#include "server/rpc/send_watchdog.h"

#include <algorithm>
#include <vector>

namespace warpline {

SendWatchdog::SendWatchdog(absl::Duration timeout) : timeout_(timeout), thread_([this] { Loop(); }) {}

SendWatchdog::~SendWatchdog() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void SendWatchdog::Add(Call& call) {
  MutexLock lock(&mutex_);
  call.since_ = MonotonicClock::now();
  call.watched_ = sending_.insert(sending_.end(), &call);
  call.is_watched_ = true;
  call.given_up_ = false;
}

void SendWatchdog::Touch(Call& call) {
  MutexLock lock(&mutex_);
  if (!call.is_watched_) return;
  call.since_ = MonotonicClock::now();
  sending_.splice(sending_.end(), sending_, call.watched_);
}

void SendWatchdog::Remove(Call& call) {
  MutexLock lock(&mutex_);
  sending_.erase(call.watched_);
  call.is_watched_ = false;
}

void SendWatchdog::CancelOverdue() {
  std::vector<Call*> overdue;
  {
    MutexLock lock(&mutex_);
    const MonotonicTime limit = MonotonicClock::now() - absl::ToChronoNanoseconds(timeout_);
    for (Call* call : sending_) {
      if (call->given_up_) continue;
      if (call->since_ > limit) break;
      call->given_up_ = true;
      call->Ref();
      overdue.push_back(call);
    }
  }
  // The calls are cancelled without the lock, because that frees slots, and listeners for free slots may call
  // back here.
  for (Call* call : overdue) {
    log_.Write("warning", "nothing read, or nothing sent, within the send timeout: call cancelled",
               {{"request_id", call->request_id()}});
    call->GiveUp();
    call->Unref();
  }
}

void SendWatchdog::Loop() {
  const absl::Duration period = std::min(timeout_ / 4, absl::Seconds(1));
  for (;;) {
    {
      MutexLock lock(&mutex_);
      if (mutex_.AwaitUntil([this] { return stopping_; }, After(period))) return;
    }
    CancelOverdue();
  }
}

}  // namespace warpline
