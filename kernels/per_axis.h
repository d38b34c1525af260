// One value for each axis of an array. Only the first `rank` are used. Only for host code: kernels use C
// arrays.
#ifndef WARPLINE_KERNELS_PER_AXIS_H_
#define WARPLINE_KERNELS_PER_AXIS_H_

#include <cstddef>
#include <utility>

namespace warpline {

inline constexpr int kMaxRank = 8;

// Ends the process with a message that names the axis. Requests are checked before they become problems, so
// an invalid axis is a bug in this program.
[[noreturn]] void EndForAxis(std::size_t axis);

template <typename T>
struct PerAxis {
  T values[kMaxRank];

  constexpr const T& operator[](std::size_t axis) const { return values[Checked(axis)]; }
  constexpr T& operator[](std::size_t axis) { return values[Checked(axis)]; }

  constexpr const T* data() const { return values; }
  constexpr T* data() { return values; }
  constexpr const T* begin() const { return values; }
  constexpr T* begin() { return values; }
  constexpr const T* end() const { return values + kMaxRank; }
  constexpr T* end() { return values + kMaxRank; }
  constexpr std::size_t size() const { return kMaxRank; }
  constexpr void fill(const T& value) {
    for (T& each : values) each = value;
  }
  friend constexpr bool operator==(const PerAxis&, const PerAxis&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const PerAxis& axes) {
    return H::combine_contiguous(std::move(h), axes.values, kMaxRank);
  }

 private:
  // A negative axis becomes a huge unsigned value.
  static constexpr std::size_t Checked(std::size_t axis) {
    if (axis >= kMaxRank) EndForAxis(axis);
    return axis;
  }
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_PER_AXIS_H_
