// Elements of several types in one kernel: they are loaded as raw bytes, and what they are is asked once a
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

// The type that an element is compared and counted in: the narrowest of these that holds all of its kind.
template <typename T>
using NumberOf = std::conditional_t<
    std::is_same_v<T, double> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t>, T,
    std::conditional_t<std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16> ||
                           std::is_same_v<T, float>,
                       float, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>>>;

// Element types whose NumberOf is Number. Calls f with an element of the type.
template <typename Number, typename F>
__device__ void VisitElements(DType dtype, F&& f) {
  VisitRealOfSize(dtype, [&]<typename T>(T element) {
    if constexpr (std::is_same_v<NumberOf<T>, Number>) f(element);
  });
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_VECTOR_LOADS_CUH_
