// Checks from time to time whether a kernel's result is still needed.
#ifndef WARPLINE_KERNELS_CPU_LOOKS_H_
#define WARPLINE_KERNELS_CPU_LOOKS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/variant.h"

namespace warpline::cpu {

// Kernels count their work in units of about a nanosecond, and stop midway if Stop returns true. Checking the
// clock takes 30 ns. Not thread-safe.
class Looks {
 public:
  // The work between two checks: 4 ms, or 40 ms if the units are ten times too short.
  static constexpr std::int64_t kWork = std::int64_t{1} << 22;
  // Loops over elements are cut into pieces of this many.
  static constexpr std::int64_t kPiece = std::int64_t{1} << 16;

  explicit Looks(const Interest& interest) : interest_(interest) {}

  // Adds the work done since the last call. After it has returned true once, it always returns true.
  bool Stop(std::int64_t work) {
    done_ += work;
    if (done_ < kWork) return stopped_;
    done_ = 0;
    stopped_ = stopped_ || interest_.HasEnded();
    return stopped_;
  }

 private:
  const Interest interest_;
  std::int64_t done_ = 0;
  bool stopped_ = false;
};

// Calls f(begin, end) for pieces of [0, count). `work` is the work per element. Returns false if it was
// stopped.
template <typename F>
bool InPieces(Looks& looks, std::int64_t count, std::int64_t work, F&& f) {
  for (std::int64_t begin = 0; begin < count; begin += Looks::kPiece) {
    const std::int64_t end = std::min(count, begin + Looks::kPiece);
    f(begin, end);
    if (looks.Stop((end - begin) * work)) return false;
  }
  return true;
}

// Same as memcpy, which moves about 4 bytes per nanosecond. Returns false if it was stopped.
inline bool CopyInPieces(Looks& looks, void* to, const void* from, std::int64_t bytes) {
  constexpr std::int64_t kBytes = 4;
  for (std::int64_t at = 0; at < bytes; at += kBytes * Looks::kPiece) {
    const std::int64_t size = std::min(bytes - at, kBytes * Looks::kPiece);
    std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at,
                static_cast<std::size_t>(size));
    if (looks.Stop(size / kBytes + 1)) return false;
  }
  return true;
}

}  // namespace warpline::cpu

#endif  // WARPLINE_KERNELS_CPU_LOOKS_H_
