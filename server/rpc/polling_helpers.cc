#include "server/rpc/polling_helpers.h"

#include "absl/time/time.h"

namespace warpline {

PollingHelpers::PollingHelpers(PollingThread& helped, int threads) : helped_(helped) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this, i] { Loop(static_cast<std::size_t>(i)); });
  }
}

PollingHelpers::~PollingHelpers() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void PollingHelpers::Add() {
  MutexLock lock(&mutex_);
  ++transfers_;
}

void PollingHelpers::Remove() {
  MutexLock lock(&mutex_);
  --transfers_;
}

void PollingHelpers::Loop(std::size_t index) {
  // How long a thread continues to poll after the last transfer for which it was needed.
  constexpr absl::Duration kAtATime = absl::Milliseconds(20);
  on_helper_ = true;
  for (;;) {
    {
      MutexLock lock(&mutex_);
      mutex_.Await([&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopping_ || transfers_ > index + 1; });
      if (stopping_) return;
    }
    helped_.Help(kAtATime);
  }
}

}  // namespace warpline
