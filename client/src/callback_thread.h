// A thread for callbacks. On another thread they could block work that they wait for themselves.
#ifndef WARPLINE_CLIENT_SRC_CALLBACK_THREAD_H_
#define WARPLINE_CLIENT_SRC_CALLBACK_THREAD_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "client/src/condition_variable.h"

namespace warpline::client {

// Runs callbacks one after another, on a thread that starts with the first one. Thread-safe.
class CallbackThread {
 public:
  CallbackThread() = default;
  ~CallbackThread() { Close(); }
  CallbackThread(const CallbackThread&) = delete;
  CallbackThread& operator=(const CallbackThread&) = delete;

  // Announces one callback, which Run will get.
  void Expect();
  // Runs a callback that was announced by Expect.
  void Run(std::function<void()> callback);
  // Waits until all announced callbacks have run. No callback may be announced after that.
  void Close();

 private:
  void RunAll();

  std::mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::function<void()>> callbacks_;
  std::size_t expected_ = 0;  // announced callbacks that have not finished
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_CALLBACK_THREAD_H_
