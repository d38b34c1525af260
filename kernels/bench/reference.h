// Results to compare with, by the plainest kernels of the benchmark's own: what is measured does not check
// itself. Two-dimensional problems only (of reductions also one-dimensional ones).
#ifndef WARPLINE_KERNELS_BENCH_REFERENCE_H_
#define WARPLINE_KERNELS_BENCH_REFERENCE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/problem.h"

namespace warpline::bench {

// out[x][y] = in[y][x]; in is rows x columns.
cudaError_t ReferenceTranspose(const void* in, void* out, std::int64_t rows, std::int64_t columns,
                               std::size_t element_bytes, cudaStream_t stream);

// A * B in f64, for dense row-major operands of a floating-point type.
cudaError_t ReferenceGemm(const GemmProblem& problem, const void* a, const void* b, double* out,
                          cudaStream_t stream);

// Sums in f64. The order of the additions is not fixed.
cudaError_t ReferenceSum(const ReduceProblem& problem, const void* x, double* out, cudaStream_t stream);

// Counted on the device; all zeros to begin with.
struct Differences {
  unsigned long long count = 0;
  unsigned long long first = ~0ull;  // index of the first wrong byte or element
};

// Bytes that differ. Addresses are aligned to 16 bytes.
cudaError_t CompareBytes(const void* got, const void* want, std::size_t bytes, Differences* device,
                         cudaStream_t stream);

// Elements with |got - want| > absolute + relative * |want|; NaN is always wrong.
cudaError_t CompareNumbers(const void* got, DType dtype, const double* want, std::int64_t count,
                           double absolute, double relative, Differences* device, cudaStream_t stream);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_REFERENCE_H_
