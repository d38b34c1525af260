// Looks now and then whether anybody still waits for a kernel's result.
#ifndef WARPLINE_KERNELS_CPU_LOOKS_H_
#define WARPLINE_KERNELS_CPU_LOOKS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/variant.h"

namespace warpline::cpu {

// Kernels count their work in units of about a nanosecond, and stop midway when Stop returns true. A look at
// the clock takes 30 ns. Not thread-safe.
class Looks {
 public:
  // Between two looks: 4 ms, and 40 ms where the units are ten times too short.
  static constexpr std::int64_t kWork = std::int64_t{1} << 22;
  // Loops over elements are cut into pieces of this many.
  static constexpr std::int64_t kPiece = std::int64_t{1} << 16;

  explicit Looks(const Interest& interest) : interest_(interest) {}

  // Counts the work that has been done since the last call. Once it has returned true it always does.
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

// Calls f(begin, end) for pieces of [0, count), each element of which is so much work. Returns false if it
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

// memcpy, which moves some 4 bytes in a nanosecond. Returns false if it stopped.
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
