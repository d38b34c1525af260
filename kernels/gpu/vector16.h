// The largest unit that a thread can load or store at once.
#ifndef WARPLINE_KERNELS_GPU_VECTOR16_H_
#define WARPLINE_KERNELS_GPU_VECTOR16_H_

namespace warpline {

// 16 bytes of elements, aligned to 16 bytes.
template <typename T>
struct alignas(16) Vector16 {
  static constexpr int kSize = 16 / sizeof(T);
  T elements[kSize];
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GPU_VECTOR16_H_
