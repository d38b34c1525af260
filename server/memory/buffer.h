// Bytes, their place, and the owner that keeps them alive.
#ifndef WARPLINE_SERVER_MEMORY_BUFFER_H_
#define WARPLINE_SERVER_MEMORY_BUFFER_H_

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace warpline {

struct Place {
  enum class Kind {
    kHost,    // ordinary memory
    kPinned,  // page-locked host memory, which devices can address
    kDevice,  // memory of one device
  };
  Kind kind = Kind::kHost;
  int device = 0;  // for kDevice: DeviceInfo::ordinal
};

// Copies share the owner: the bytes live until the last copy is destroyed. They are freed on the thread that
// destroys it. Empty by default.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::span<std::byte> bytes, Place place, std::shared_ptr<void> owner)
      : bytes_(bytes), place_(place), owner_(std::move(owner)) {}

  std::span<std::byte> bytes() const { return bytes_; }
  const Place& place() const { return place_; }
  // Returns the first `bytes` bytes, with the same owner.
  Buffer First(std::size_t bytes) const { return Buffer(bytes_.first(bytes), place_, owner_); }

 private:
  std::span<std::byte> bytes_;
  Place place_;
  std::shared_ptr<void> owner_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_MEMORY_BUFFER_H_
