// The last part of a matrix product, which all our own kernels share.
#ifndef WARPLINE_KERNELS_GEMM_EPILOGUE_H_
#define WARPLINE_KERNELS_GEMM_EPILOGUE_H_

#include <cmath>

#include "kernels/host_device.h"
#include "kernels/problem.h"

namespace warpline {

// Computes in float or double. NaN stays NaN. gelu is the tanh form, x / 2 (1 + tanh(u)), as in the libraries
// that fuse it: D. Hendrycks, K. Gimpel, "Gaussian Error Linear Units", 2016. It is computed as
// x / (1 + exp(-2 u)), which is the same function, but loses no digits where tanh(u) is near -1.
template <typename V>
WARPLINE_HOST_DEVICE V Activate(Activation activation, V x) {
  constexpr V kSqrtTwoOverPi = static_cast<V>(0.79788456080286535588L);
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < 0 ? V{0} : x;
    case Activation::kGelu: {
      constexpr V kLeast = -64;  // where the result is -0 in float and in double, as for all smaller x
      if (x < kLeast) x = kLeast;
      return x / (1 + std::exp(-2 * kSqrtTwoOverPi * (x + static_cast<V>(0.044715L) * x * x * x)));
    }
  }
  return x;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_EPILOGUE_H_
