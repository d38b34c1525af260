// The arithmetic of scans: operations, vectors of 16 bytes, and scans within a thread and within a warp.
#ifndef WARPLINE_KERNELS_SCAN_VECTORS_CUH_
#define WARPLINE_KERNELS_SCAN_VECTORS_CUH_

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/host_device.h"

namespace warpline::scan {

inline constexpr int kScanThreads = 256;
inline constexpr int kScanWarps = kScanThreads / 32;
inline constexpr int kVectorBytes = 16;
inline constexpr unsigned kAllLanes = 0xffffffff;

template <typename T>
struct SumOp {
  static constexpr T kIdentity = 0;
  static __device__ __forceinline__ T Apply(T a, T b) { return a + b; }
};
template <typename T>
struct ProdOp {
  static constexpr T kIdentity = 1;
  static __device__ __forceinline__ T Apply(T a, T b) { return a * b; }
};
// The result is NaN if either operand is NaN.
template <typename T>
struct MinOp {
  static constexpr T kIdentity = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                                      : std::numeric_limits<T>::max();
  static __device__ __forceinline__ T Apply(T a, T b) { return a < b || a != a ? a : b; }
};
template <typename T>
struct MaxOp {
  static constexpr T kIdentity = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                                      : std::numeric_limits<T>::lowest();
  static __device__ __forceinline__ T Apply(T a, T b) { return a > b || a != a ? a : b; }
};

template <typename T>
inline constexpr int kVectorSize = kVectorBytes / static_cast<int>(sizeof(T));

template <typename T>
struct alignas(kVectorBytes) ScanVector {
  T e[kVectorSize<T>];
};

// Stores 16 bytes at once. The compiler splits such stores if the elements come from several branches.
template <typename T>
__device__ __forceinline__ void StoreAtOnce(T* to, const T (&elements)[kVectorSize<T>]) {
  const std::size_t address = __cvta_generic_to_global(to);
  if constexpr (sizeof(T) == 4) {
    std::uint32_t bits[4];
    memcpy(bits, elements, sizeof(bits));
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(bits[0]), "r"(bits[1]),
                 "r"(bits[2]), "r"(bits[3])
                 : "memory");
  } else {
    std::uint64_t bits[2];
    memcpy(bits, elements, sizeof(bits));
    asm volatile("st.global.v2.b64 [%0], {%1, %2};" ::"l"(address), "l"(bits[0]), "l"(bits[1]) : "memory");
  }
}

template <typename T, typename Op>
__device__ __forceinline__ ScanVector<T> IdentityVector() {
  ScanVector<T> vector;
#pragma unroll
  for (int i = 0; i < kVectorSize<T>; ++i) vector.e[i] = Op::kIdentity;
  return vector;
}

template <typename T, typename Op>
__device__ __forceinline__ ScanVector<T> Combine(const ScanVector<T>& a, const ScanVector<T>& b) {
  ScanVector<T> vector;
#pragma unroll
  for (int i = 0; i < kVectorSize<T>; ++i) vector.e[i] = Op::Apply(a.e[i], b.e[i]);
  return vector;
}

// The elements of one row, as positions in the array.
struct RowSpan {
  std::int64_t begin = 0, end = 0;
};

// Kernels use vector accesses if the base addresses are aligned. The order of additions is the same without
// them.
struct ScanAccess {
  bool exclusive = false, reverse = false;
  bool vector_loads = false, vector_stores = false;
};

template <typename T>
__device__ __forceinline__ bool IsWhole(std::int64_t place, const RowSpan& row) {
  return place >= row.begin && place + kVectorSize<T> <= row.end;
}

// Loads the vector at `place`. Elements outside of the row are the identity.
template <typename T, typename Op>
__device__ __forceinline__ ScanVector<T> LoadVector(const T* x, std::int64_t place, const RowSpan& row,
                                                    bool vector_loads) {
  if (vector_loads && IsWhole<T>(place, row)) return *reinterpret_cast<const ScanVector<T>*>(x + place);
  ScanVector<T> vector = IdentityVector<T, Op>();
#pragma unroll
  for (int i = 0; i < kVectorSize<T>; ++i) {
    if (place + i >= row.begin && place + i < row.end) vector.e[i] = x[place + i];
  }
  return vector;
}

template <typename T>
__device__ __forceinline__ void StoreVector(T* y, std::int64_t place, const RowSpan& row, bool vector_stores,
                                            const ScanVector<T>& vector) {
  if (vector_stores && IsWhole<T>(place, row)) {
    StoreAtOnce(y + place, vector.e);
    return;
  }
#pragma unroll
  for (int i = 0; i < kVectorSize<T>; ++i) {
    if (place + i >= row.begin && place + i < row.end) y[place + i] = vector.e[i];
  }
}

template <typename T>
__device__ __forceinline__ ScanVector<T> Mirrored(const ScanVector<T>& vector) {
  ScanVector<T> mirrored;
#pragma unroll
  for (int i = 0; i < kVectorSize<T>; ++i) mirrored.e[i] = vector.e[kVectorSize<T> - 1 - i];
  return mirrored;
}

// Loads the vectors of one thread, which are `step` elements apart, from `place` on.
template <typename T, typename Op, int kVectors>
__device__ __forceinline__ void LoadVectors(ScanVector<T> (&vectors)[kVectors], const T* x,
                                            std::int64_t place, std::int64_t step, const RowSpan& row,
                                            bool vector_loads) {
  // The vectors between two whole ones are whole.
  if (vector_loads && IsWhole<T>(place, row) && IsWhole<T>(place + (kVectors - 1) * step, row)) {
#pragma unroll
    for (int r = 0; r < kVectors; ++r) {
      vectors[r] = *reinterpret_cast<const ScanVector<T>*>(x + place + r * step);
    }
    return;
  }
#pragma unroll
  for (int r = 0; r < kVectors; ++r) vectors[r] = LoadVector<T, Op>(x, place + r * step, row, vector_loads);
}

// Brings the elements into the order of the scan. All loads must have been issued before.
template <typename T, int kVectors>
__device__ __forceinline__ void OrderVectors(ScanVector<T> (&vectors)[kVectors], bool reverse) {
  if (!reverse) return;
#pragma unroll
  for (int r = 0; r < kVectors; ++r) vectors[r] = Mirrored(vectors[r]);
}

// Returns the results for a vector of running results. `prefix` is the combination of all elements before it.
template <typename T, typename Op>
__device__ __forceinline__ ScanVector<T> Finished(const ScanVector<T>& vector, T prefix, bool exclusive) {
  ScanVector<T> result;
#pragma unroll
  for (int i = 0; i < kVectorSize<T>; ++i) result.e[i] = Op::Apply(prefix, vector.e[i]);
  if (exclusive) {
#pragma unroll
    for (int i = kVectorSize<T> - 1; i > 0; --i) result.e[i] = result.e[i - 1];
    result.e[0] = prefix;
  }
  return result;
}

template <typename T, typename Op, int kVectors>
__device__ __forceinline__ void StoreVectors(const ScanVector<T> (&vectors)[kVectors],
                                             const T (&before)[kVectors], T prefix, T* y, std::int64_t place,
                                             std::int64_t step, const RowSpan& row,
                                             const ScanAccess& access) {
  const bool are_whole =
      access.vector_stores && IsWhole<T>(place, row) && IsWhole<T>(place + (kVectors - 1) * step, row);
#pragma unroll
  for (int r = 0; r < kVectors; ++r) {
    ScanVector<T> result = Finished<T, Op>(vectors[r], Op::Apply(prefix, before[r]), access.exclusive);
    if (access.reverse) result = Mirrored(result);
    if (are_whole) {
      StoreAtOnce(y + place + r * step, result.e);
    } else {
      StoreVector(y, place + r * step, row, access.vector_stores, result);
    }
  }
}

// Replaces the elements of a vector by running results.
template <typename T, typename Op>
__device__ __forceinline__ void ScanElements(ScanVector<T>& vector) {
#pragma unroll
  for (int i = 1; i < kVectorSize<T>; ++i) vector.e[i] = Op::Apply(vector.e[i - 1], vector.e[i]);
}

// Combines the values of all lanes up to and including each lane, within groups of `width` lanes.
template <typename T, typename Op>
__device__ __forceinline__ T ScanLanes(T value, int lane_in_run, int width) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    if (distance >= width) break;
    const T before = __shfl_up_sync(kAllLanes, value, distance);
    if (lane_in_run >= distance) value = Op::Apply(before, value);
  }
  return value;
}

template <typename T, typename Op>
__device__ __forceinline__ T ValueBefore(T inclusive, int lane_in_run) {
  const T before = __shfl_up_sync(kAllLanes, inclusive, 1);
  return lane_in_run == 0 ? Op::kIdentity : before;
}

// Combines the values of all lanes in order, and returns the result in each lane.
template <typename T, typename Op>
__device__ __forceinline__ T ReduceLanes(T value) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    value = Op::Apply(value, __shfl_down_sync(kAllLanes, value, distance));
  }
  return __shfl_sync(kAllLanes, value, 0);
}

// Scans the vectors of a warp: lane by lane, then vector by vector of a lane. Replaces each vector by running
// results. before[r] becomes the combination of everything before vector r in the warp. Returns the total.
template <typename T, typename Op, int kVectors>
__device__ __forceinline__ T ScanWarp(ScanVector<T> (&vectors)[kVectors], T (&before)[kVectors], int lane) {
  T total = Op::kIdentity;
#pragma unroll
  for (int r = 0; r < kVectors; ++r) {
    ScanElements<T, Op>(vectors[r]);
    const T inclusive = ScanLanes<T, Op>(vectors[r].e[kVectorSize<T> - 1], lane, 32);
    before[r] = Op::Apply(total, ValueBefore<T, Op>(inclusive, lane));
    total = Op::Apply(total, __shfl_sync(kAllLanes, inclusive, 31));
  }
  return total;
}

}  // namespace warpline::scan

#endif  // WARPLINE_KERNELS_SCAN_VECTORS_CUH_
