// A thread for callbacks that would otherwise keep another thread from what they may wait for.
#ifndef WARPLINE_CLIENT_SRC_CALLBACK_THREAD_H_
#define WARPLINE_CLIENT_SRC_CALLBACK_THREAD_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace warpline::client {

// Runs them one after another, on a thread that starts with the first. Thread-safe.
class CallbackThread {
 public:
  CallbackThread() = default;
  ~CallbackThread() { Close(); }
  CallbackThread(const CallbackThread&) = delete;
  CallbackThread& operator=(const CallbackThread&) = delete;

  // One callback will come by Run.
  void Expect();
  // One that was expected.
  void Run(std::function<void()> callback);
  // Waits until all that were expected have run. None may be expected after that.
  void Close();

 private:
  void RunAll();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> callbacks_;
  std::size_t expected_ = 0;  // and not over
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_CALLBACK_THREAD_H_
