// Indices of elements along an axis, on the CPU.
#ifndef WARPLINE_KERNELS_CPU_INDICES_H_
#define WARPLINE_KERNELS_CPU_INDICES_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cpu/looks.h"
#include "kernels/sort/keys.h"
#include "kernels/variant.h"

namespace warpline::cpu {

// Calls f with the type of indices of this data type.
template <typename F>
void VisitIndexType(DType dtype, F&& f) {
  if (dtype == DType::kI32) return f(std::type_identity<std::int32_t>());
  f(std::type_identity<std::int64_t>());
}

// Calls f with an unsigned type of the size of the elements, or a struct of 16 bytes. Elements are moved as
// bits.
struct Bits128 {
  std::uint64_t halves[2];
};
template <typename F>
void VisitBits(DType dtype, F&& f) {
  if (SizeOf(dtype) > sizeof(std::uint64_t)) return f(std::type_identity<Bits128>());
  VisitKeyType(dtype, f);
}

// Reads an index once. It may lie in memory shared with the client, which can change it at any time.
template <typename Index>
std::int64_t LoadIndex(const Index* at) {
  return *static_cast<const volatile Index*>(at);
}

// Returns the position along the axis for an index, or -1 if it is out of range. That can happen if the
// client has changed the index since CheckIndices.
inline std::int64_t PlaceOf(std::int64_t index, std::int64_t axis_size) {
  const std::int64_t place = index < 0 ? index + axis_size : index;
  return place >= 0 && place < axis_size ? place : -1;
}

// Returns whether all indices are in [-axis_size, axis_size). Reports the first one that is not. Also returns
// false if it was stopped.
template <typename Index>
bool CheckIndices(const Index* indices, std::int64_t count, std::int64_t axis_size,
                  const BadIndexReport& report, Looks& looks) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (i % Looks::kPiece == 0 && looks.Stop(Looks::kPiece)) return false;
    const std::int64_t index = LoadIndex(indices + i);
    if (PlaceOf(index, axis_size) >= 0) continue;
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
