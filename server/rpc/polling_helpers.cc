#include "server/rpc/polling_helpers.h"

#include <chrono>
#include <utility>

namespace warpline {

PollingHelpers::PollingHelpers(std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues)
    : queues_(std::move(queues)) {
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    threads_.emplace_back([this, i] { Loop(i); });
  }
}

PollingHelpers::~PollingHelpers() {
  for (const auto& queue : queues_) queue->Shutdown();
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
  // A queue must be empty before it goes.
  for (const auto& queue : queues_) {
    void* tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) {
    }
  }
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
  // How long a thread polls on after the last transfer for which it was needed.
  constexpr std::chrono::milliseconds kAtATime{20};
  for (;;) {
    {
      MutexLock lock(&mutex_);
      mutex_.Await([&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopping_ || transfers_ > index + 1; });
      if (stopping_) return;
    }
    void* tag = nullptr;
    bool ok = false;
    const auto until = std::chrono::system_clock::now() + kAtATime;
    if (queues_[index]->AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::SHUTDOWN) return;
  }
}

}  // namespace warpline
