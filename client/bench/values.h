// Elements of a benchmark's arrays: patterns to fill them with, and their values for checking results.
#ifndef WARPLINE_CLIENT_BENCH_VALUES_H_
#define WARPLINE_CLIENT_BENCH_VALUES_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/dtype.h"
#include "warpline/array.h"
#include "warpline/requests.h"

namespace warpline::client {

// Bits that tell the elements apart, none of them a NaN: for operations that move elements.
void FillDistinct(DType dtype, void* data, std::int64_t count);
// -2, -1, 0, 1 or 2 (unsigned: 0 to 4): products and sums of them are exact, or nearly, whatever the order.
void FillSmall(DType dtype, void* data, std::int64_t count, std::uint64_t seed);

// Returns element `index`. The type must be real.
double ElementAt(DType dtype, const void* data, std::int64_t index);

// Checks that the result equals that of the plain loops, which are the server's variant "reference".
// Internal, naming the element, if it does not. Transpose: checks every element; the last two axes are
// swapped. Gemm: two matrices, nothing transposed; checks some elements. Reduce: checks every element.
absl::Status CheckTranspose(const TransposeArgs& args, const Array& y);
absl::Status CheckGemm(const GemmArgs& args, const Array& d);
absl::Status CheckReduce(const ReduceArgs& args, const Array& y);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_BENCH_VALUES_H_
