// Calls of the C interface that have ended, and the descriptor that tells of them.
#ifndef WARPLINE_CLIENT_ABI_QUEUE_H_
#define WARPLINE_CLIENT_ABI_QUEUE_H_

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>

#include "absl/status/status.h"
#include "client/abi/result.h"
#include "warpline/warpline.h"

// It lives from the moment that it is submitted until it is finished.
struct warpline_call {
  void* user_data = nullptr;
  std::stop_source stop;
  absl::Status status;
  std::unique_ptr<warpline_result> result;  // null unless the status is OK
};

// Thread-safe.
struct warpline_queue {
 public:
  const pid_t process = getpid();

  // `descriptor`: an eventfd, which becomes the queue's.
  explicit warpline_queue(int descriptor) : descriptor_(descriptor) {}
  ~warpline_queue();
  warpline_queue(const warpline_queue&) = delete;
  warpline_queue& operator=(const warpline_queue&) = delete;

  int descriptor() const { return descriptor_; }
  void Push(std::unique_ptr<warpline_call> call);
  // Null if none came within so many seconds.
  std::unique_ptr<warpline_call> Pop(double seconds);

 private:
  const int descriptor_;
  std::mutex mutex_;
  std::condition_variable pushed_;
  std::deque<std::unique_ptr<warpline_call>> calls_;  // the descriptor is readable while there are any
};

#endif  // WARPLINE_CLIENT_ABI_QUEUE_H_
