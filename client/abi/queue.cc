#include "client/abi/queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "client/abi/error.h"
#include "client/abi/process.h"

warpline_queue::~warpline_queue() { close(descriptor_); }

void warpline_queue::Push(std::unique_ptr<warpline_call> call) {
  // Notify under the lock: the caller that pops the last call may free the queue.
  const std::lock_guard<std::mutex> lock(mutex_);
  calls_.push_back(std::move(call));
  if (calls_.size() == 1) eventfd_write(descriptor_, 1);
  pushed_.notify_one();
}

std::unique_ptr<warpline_call> warpline_queue::Pop(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  constexpr double kLongest = 1e7;  // seconds; the clock's range is limited
  const std::chrono::duration<double> longest(seconds > 0 ? std::min(seconds, kLongest) : 0.0);
  pushed_.wait_for(lock, longest, [this] { return !calls_.empty(); });
  if (calls_.empty()) return nullptr;
  std::unique_ptr<warpline_call> call = std::move(calls_.front());
  calls_.pop_front();
  eventfd_t count = 0;
  if (calls_.empty()) eventfd_read(descriptor_, &count);
  return call;
}

warpline_error* warpline_queue_create(warpline_queue** out) {
  return warpline::abi::Guarded([&]() -> absl::Status {
    const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (descriptor < 0) return absl::ErrnoToStatus(errno, "a descriptor for a queue");
    *out = new warpline_queue(descriptor);
    return absl::OkStatus();
  });
}

int warpline_queue_descriptor(const warpline_queue* queue) { return queue->descriptor(); }

warpline_call* warpline_queue_next(warpline_queue* queue, double seconds) {
  return queue->Pop(seconds).release();
}

void warpline_queue_free(warpline_queue* queue) { warpline::abi::FreeInItsProcess(queue); }

void* warpline_call_user_data(const warpline_call* call) { return call->user_data; }

void warpline_call_cancel(warpline_call* call) { call->stop.request_stop(); }

warpline_error* warpline_call_finish(warpline_call* call, warpline_result** out) {
  const std::unique_ptr<warpline_call> ended(call);
  if (ended->status.ok()) *out = ended->result.release();
  return warpline::abi::ToError(ended->status);
}
