// Complex numbers for elementwise operations, on the host and on a device.
#ifndef WARPLINE_KERNELS_MAP_COMPLEX_NUMBER_H_
#define WARPLINE_KERNELS_MAP_COMPLEX_NUMBER_H_

namespace warpline::map {

template <typename T>
struct ComplexNumber {
  T re = 0, im = 0;
};

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<ComplexNumber<T>> = true;

}  // namespace warpline::map

#endif  // WARPLINE_KERNELS_MAP_COMPLEX_NUMBER_H_
