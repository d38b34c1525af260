#include "server/base/worker_pool.h"

#include <utility>

#include "server/base/clock.h"

namespace warpline {

WorkerPool::WorkerPool(int threads, absl::Duration look) : look_(absl::ToChronoNanoseconds(look)) {
  threads_.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  posted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::Post(absl::AnyInvocable<void()> task) {
  bool wake = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
    // The order of these two operations, and of those in Loop, ensures that a thread sees the task.
    unclaimed_.fetch_add(1);
    // While a thread looks for tasks, nobody must be woken: that thread takes this task, or sees it when it
    // checks again under the lock before it sleeps.
    wake = sleeping_ > 0 && looking_.load() == 0;
  }
  if (wake) posted_.notify_one();
}

WorkerPool::Task WorkerPool::TakeFirst() {
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

WorkerPool::Task WorkerPool::TryTake() {
  int unclaimed = unclaimed_.load(std::memory_order_relaxed);
  if (unclaimed == 0 ||
      !unclaimed_.compare_exchange_strong(unclaimed, unclaimed - 1, std::memory_order_relaxed)) {
    return nullptr;
  }
  const std::lock_guard<std::mutex> lock(mutex_);  // there are as many tasks as claims
  return TakeFirst();
}

WorkerPool::Task WorkerPool::AwaitTask() {
  std::unique_lock<std::mutex> lock(mutex_);
  ++sleeping_;
  // Claims without the lock only decrease the number. So if it is positive, a task is claimed here or by
  // another thread.
  bool claimed = false;
  posted_.wait(lock, [&] {
    int unclaimed = unclaimed_.load(std::memory_order_relaxed);
    while (unclaimed > 0 && !claimed) {
      claimed = unclaimed_.compare_exchange_weak(unclaimed, unclaimed - 1, std::memory_order_relaxed);
    }
    return claimed || stopping_;
  });
  --sleeping_;
  return claimed ? TakeFirst() : nullptr;
}

void WorkerPool::Loop() {
  on_worker_thread_ = true;
  for (;;) {
    looking_.fetch_add(1, std::memory_order_relaxed);
    Task task = TryTake();
    const MonotonicTime start = MonotonicClock::now();
    while (!task && MonotonicClock::now() - start < look_) task = TryTake();
    looking_.fetch_sub(1);
    if (!task) task = AwaitTask();
    if (!task) return;
    // Post may have relied on this thread to take more tasks, so wake another one.
    if (unclaimed_.load() > 0) posted_.notify_one();
    task();
  }
}

}  // namespace warpline
