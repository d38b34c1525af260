#include "server/rpc/descriptor_closer.h"

#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"

namespace warpline {

struct DescriptorCloser::Queue {
  mutable Mutex mutex;
  std::deque<UniqueFd> descriptors ABSL_GUARDED_BY(mutex);
  bool closing ABSL_GUARDED_BY(mutex) = false;  // a descriptor that is no longer in the list is being closed
  bool ended ABSL_GUARDED_BY(mutex) = false;

  bool HasNews() const ABSL_SHARED_LOCKS_REQUIRED(mutex) { return !descriptors.empty() || ended; }

  void Loop() {
    for (;;) {
      UniqueFd next;
      {
        MutexLock lock(&mutex);
        closing = false;
        mutex.Await([this] { return HasNews(); });
        if (descriptors.empty()) return;
        next = std::move(descriptors.front());
        descriptors.pop_front();
        closing = true;
      }
      next.Reset();
    }
  }
};

DescriptorCloser::~DescriptorCloser() {
  if (queue_ == nullptr) return;
  MutexLock lock(&queue_->mutex);
  queue_->ended = true;
}

void DescriptorCloser::Close(UniqueFd descriptor) {
  if (queue_ == nullptr) {
    queue_ = std::make_shared<Queue>();
    std::thread([queue = queue_] { queue->Loop(); }).detach();
  }
  MutexLock lock(&queue_->mutex);
  queue_->descriptors.push_back(std::move(descriptor));
}

std::size_t DescriptorCloser::waiting() const {
  if (queue_ == nullptr) return 0;
  MutexLock lock(&queue_->mutex);
  return queue_->descriptors.size() + (queue_->closing ? 1 : 0);
}

}  // namespace warpline
