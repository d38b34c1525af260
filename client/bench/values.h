// Elements of a benchmark's arrays: patterns to fill them, and their values to check results.
#ifndef WARPLINE_CLIENT_BENCH_VALUES_H_
#define WARPLINE_CLIENT_BENCH_VALUES_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/dtype.h"
#include "warpline/array.h"
#include "warpline/requests.h"

namespace warpline::client {

// Fills with bits that distinguish the elements and are never a NaN: for operations that move elements.
void FillDistinct(DType dtype, void* data, std::int64_t count);
// Fills with -2, -1, 0, 1 or 2 (unsigned: 0 to 4). Their products and sums are exact, or nearly, in any
// order.
void FillSmall(DType dtype, void* data, std::int64_t count, std::uint64_t seed);

// Returns element `index`. The type must be real.
double ElementAt(DType dtype, const void* data, std::int64_t index);

// Checks that the result equals that of plain loops, which are the server's variant "reference". If not,
// returns Internal and names the element. Transpose: checks every element; the last two axes are swapped.
// Gemm: two matrices, nothing transposed; checks some elements. Reduce: checks every element.
absl::Status CheckTranspose(const TransposeArgs& args, const Array& y);
absl::Status CheckGemm(const GemmArgs& args, const Array& d);
absl::Status CheckReduce(const ReduceArgs& args, const Array& y);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_BENCH_VALUES_H_
