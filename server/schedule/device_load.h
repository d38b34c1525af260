// How busy each device is.
#ifndef WARPLINE_SERVER_SCHEDULE_DEVICE_LOAD_H_
#define WARPLINE_SERVER_SCHEDULE_DEVICE_LOAD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace warpline {

// The seconds of work that jobs have brought to each device and that have not ended: of those that run there,
// and of those that wait and can run nowhere else. The seconds of a job are estimated when it comes, and
// count in full until it ends. Thread-safe. Outlives its parts.
class DeviceLoad {
 public:
  explicit DeviceLoad(std::size_t devices) : nanoseconds_(devices) {}

  // The work of one job. It counts until this is destroyed. Empty by default.
  class Part {
   public:
    Part() = default;
    Part(Part&& other) noexcept { *this = std::move(other); }
    Part& operator=(Part&& other) noexcept {
      End();
      counter_ = std::exchange(other.counter_, nullptr);
      nanoseconds_ = other.nanoseconds_;
      return *this;
    }
    ~Part() { End(); }
    void End() {
      if (counter_ != nullptr) counter_->fetch_sub(nanoseconds_, std::memory_order_relaxed);
      counter_ = nullptr;
    }
    bool empty() const { return counter_ == nullptr; }

   private:
    friend class DeviceLoad;
    std::atomic<std::int64_t>* counter_ = nullptr;
    std::int64_t nanoseconds_ = 0;
  };

  Part Add(int device, double seconds) {
    Part part;
    part.counter_ = &nanoseconds_[static_cast<std::size_t>(device)];
    part.nanoseconds_ = static_cast<std::int64_t>(seconds * 1e9);
    part.counter_->fetch_add(part.nanoseconds_, std::memory_order_relaxed);
    return part;
  }
  double Seconds(int device) const {
    return static_cast<double>(
               nanoseconds_[static_cast<std::size_t>(device)].load(std::memory_order_relaxed)) *
           1e-9;
  }

 private:
  std::vector<std::atomic<std::int64_t>> nanoseconds_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_DEVICE_LOAD_H_
