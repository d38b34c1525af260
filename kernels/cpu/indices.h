// Indices of elements along an axis, on the CPU.
#ifndef WARPLINE_KERNELS_CPU_INDICES_H_
#define WARPLINE_KERNELS_CPU_INDICES_H_

#include <cstdint>
#include <type_traits>

#include "kernels/sort/keys.h"
#include "kernels/variant.h"

namespace warpline::cpu {

// Calls f with the type of indices of this data type.
template <typename F>
void VisitIndexType(DType dtype, F&& f) {
  if (dtype == DType::kI32) return f(std::type_identity<std::int32_t>());
  f(std::type_identity<std::int64_t>());
}

// Calls f with an unsigned type of the size of the elements, or a struct of 16 bytes: they are moved as bits.
struct Bits128 {
  std::uint64_t halves[2];
};
template <typename F>
void VisitBits(DType dtype, F&& f) {
  if (SizeOf(dtype) > sizeof(std::uint64_t)) return f(std::type_identity<Bits128>());
  VisitKeyType(dtype, f);
}

// Returns the place along the axis that an index in range means.
inline std::int64_t PlaceOf(std::int64_t index, std::int64_t axis_size) {
  return index < 0 ? index + axis_size : index;
}

// Returns whether all indices are in [-axis_size, axis_size). The first one that is not is reported.
template <typename Index>
bool CheckIndices(const Index* indices, std::int64_t count, std::int64_t axis_size,
                  const BadIndexReport& report) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = indices[i];
    if (index >= -axis_size && index < axis_size) continue;
    if (report.found != nullptr) {
      report.found->step = report.step;
      report.found->place = i;
      report.found->value = index;
    }
    return false;
  }
  return true;
}

}  // namespace warpline::cpu

#endif  // WARPLINE_KERNELS_CPU_INDICES_H_
