#include "client/src/stream_threads.h"

#include <system_error>
#include <utility>

namespace warpline::client {
namespace {

// Each large call also has its own threads for its transfers.
constexpr std::size_t kMaxThreads = 8;

}  // namespace

StreamThreads::~StreamThreads() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

std::function<void(const absl::Status&)> StreamThreads::Run(Work work) {
  auto entry = std::make_shared<Entry>(Entry{.work = std::move(work)});
  const auto give_up = [this, entry](const absl::Status& why) {
    if (const Work taken = Take(*entry)) taken(why);
  };
  bool has_thread = true;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(entry);
    if (waiting_.size() > idle_ && threads_.size() < kMaxThreads) {
      try {
        threads_.emplace_back(&StreamThreads::RunAll, this);
      } catch (const std::system_error&) {
        has_thread = !threads_.empty();
      }
    }
    changed_.notify_one();
  }
  if (!has_thread) give_up(absl::ResourceExhaustedError("there is no thread for the call"));
  return give_up;
}

StreamThreads::Work StreamThreads::Take(Entry& entry) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(entry.taken, true)) return nullptr;
  return std::exchange(entry.work, nullptr);
}

void StreamThreads::RunAll() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;
    const std::shared_ptr<Entry> entry = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    if (const Work work = Take(*entry)) work(absl::OkStatus());
    lock.lock();
  }
}

}  // namespace warpline::client
