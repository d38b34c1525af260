// Elements of several types in one kernel: they are loaded as raw bytes, and their type is checked once per
// load.
#ifndef WARPLINE_KERNELS_REDUCE_VECTOR_LOADS_CUH_
#define WARPLINE_KERNELS_REDUCE_VECTOR_LOADS_CUH_

#include <cstdint>
#include <type_traits>

#include "kernels/gpu/raw_vector.cuh"
#include "kernels/gpu/real.cuh"
#include "kernels/reduce/add_pack.cuh"
#include "kernels/reduce/vector_plan.h"

namespace warpline {

// Calls f with an element of the type, if its NumberOf is Number.
template <typename Number, typename F>
__device__ void VisitElements(DType dtype, F&& f) {
  VisitRealOfSize(dtype, [&]<typename T>(T element) {
    if constexpr (std::is_same_v<NumberOf<T>, Number>) f(element);
  });
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_VECTOR_LOADS_CUH_
