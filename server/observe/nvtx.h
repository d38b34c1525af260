// Ranges on a profiler's timeline (NVTX): what a thread did, and where a request was at what time. They exist
// in builds with -DWARPLINE_NVTX=ON; in other builds everything here is empty and compiles to nothing.
// docs/profiling.md describes how to view them.
#ifndef WARPLINE_SERVER_OBSERVE_NVTX_H_
#define WARPLINE_SERVER_OBSERVE_NVTX_H_

#include <cstdint>
#include <optional>
#include <utility>

namespace warpline::nvtx {

// Constant names, which are registered with the profiler once, so that a range need not pass a string.
enum class Name : std::uint8_t {
  // Names for what a thread does.
  kConvert,
  kAdmission,
  kStage,
  kCopy,
  kLaunch,
  kBuildGraph,
  kLaunchGraph,
  kLaunchOnSlots,
  kLaunchInPieces,
  kLaunchCalls,
  kStep,  // on the CPU
  kComplete,
  kRespond,
  // Names for where a request is.
  kQueue,
  kDevice,
  kSend,
};
inline constexpr int kNames = static_cast<int>(Name::kSend) + 1;

#ifdef WARPLINE_NVTX

// The payload of ranges, which tells the ranges of one request from those of others. 0 means no request.
class RequestNumber {
 public:
  RequestNumber() = default;
  // Numbers count from 1 and are unique in the process. Thread-safe.
  static RequestNumber Next();
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

// A range on this thread from here to the end of the scope. Ranges may be nested.
class [[maybe_unused]] Range {
 public:
  [[nodiscard]] explicit Range(Name name, RequestNumber request = {});
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

// A range that may end on another thread than the one where it began. It ends at the latest when it is
// destroyed. Empty by default.
class SpanningRange {
 public:
  SpanningRange() = default;
  [[nodiscard]] SpanningRange(Name name, RequestNumber request);
  [[nodiscard]] SpanningRange(const char* name, RequestNumber request);  // copies the name
  SpanningRange(SpanningRange&& other) noexcept : id_(std::exchange(other.id_, std::nullopt)) {}
  SpanningRange& operator=(SpanningRange&& other) noexcept {
    if (this != &other) {
      End();
      id_ = std::exchange(other.id_, std::nullopt);
    }
    return *this;
  }
  ~SpanningRange() { End(); }
  void End();

 private:
  std::optional<std::uint64_t> id_;
};

// Marks a moment with a text, so that a request can be found by its id.
void Mark(const char* text, RequestNumber request);

#else

class RequestNumber {
 public:
  static RequestNumber Next() { return {}; }
};

class [[maybe_unused]] Range {
 public:
  [[nodiscard]] explicit Range(Name, RequestNumber = {}) {}
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

class SpanningRange {
 public:
  SpanningRange() = default;
  [[nodiscard]] SpanningRange(Name, RequestNumber) {}
  [[nodiscard]] SpanningRange(const char*, RequestNumber) {}
  SpanningRange(SpanningRange&&) = default;
  SpanningRange& operator=(SpanningRange&&) = default;
  void End() {}
};

inline void Mark(const char*, RequestNumber) {}

#endif

}  // namespace warpline::nvtx

#endif  // WARPLINE_SERVER_OBSERVE_NVTX_H_
