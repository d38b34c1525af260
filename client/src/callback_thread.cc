#include "client/src/callback_thread.h"

#include <utility>

namespace warpline::client {

void CallbackThread::Expect() {
  const std::lock_guard lock(mutex_);
  ++expected_;
  if (!thread_.joinable()) thread_ = std::thread(&CallbackThread::RunAll, this);
}

void CallbackThread::Run(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  callbacks_.push_back(std::move(callback));
  changed_.notify_one();
}

void CallbackThread::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void CallbackThread::RunAll() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !callbacks_.empty() || (closed_ && expected_ == 0); });
    if (callbacks_.empty()) return;
    std::function<void()> callback = std::move(callbacks_.front());
    callbacks_.pop_front();
    lock.unlock();
    callback();
    callback = nullptr;  // what the callback holds must be released before Close returns
    lock.lock();
    --expected_;
  }
}

}  // namespace warpline::client
