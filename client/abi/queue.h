// Finished calls of the C interface, and the descriptor that signals them.
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

// A call lives from its submission until it is finished.
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

  // `descriptor`: an eventfd, which the queue takes over.
  explicit warpline_queue(int descriptor) : descriptor_(descriptor) {}
  ~warpline_queue();
  warpline_queue(const warpline_queue&) = delete;
  warpline_queue& operator=(const warpline_queue&) = delete;

  int descriptor() const { return descriptor_; }
  void Push(std::unique_ptr<warpline_call> call);
  // Returns null if no call ends within `seconds` seconds.
  std::unique_ptr<warpline_call> Pop(double seconds);

 private:
  const int descriptor_;
  std::mutex mutex_;
  std::condition_variable pushed_;
  std::deque<std::unique_ptr<warpline_call>> calls_;  // the descriptor is readable while this is not empty
};

#endif  // WARPLINE_CLIENT_ABI_QUEUE_H_
