// Results to compare with, by the plainest kernels of the benchmark's own: what is measured does not check
// itself. With the kernels of the server they share what an operation means (monoids, epilogues,
// conversions), and nothing of who computes which part.
#ifndef WARPLINE_KERNELS_BENCH_HARNESS_REFERENCE_H_
#define WARPLINE_KERNELS_BENCH_HARNESS_REFERENCE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/map/pair.h"
#include "kernels/problem.h"
#include "kernels/variant.h"

namespace warpline::bench {

// Moves elements bit for bit; the input and the result have the same type.
cudaError_t ReferenceTranspose(const TransposeProblem& problem, const void* in, void* out,
                               cudaStream_t stream);

// In f64, unrounded, for operands of a floating-point type or i8; alpha is 1 and beta 0.
cudaError_t ReferenceGemm(const GemmProblem& problem, const Operands& operands, double* out,
                          cudaStream_t stream);

// In f64 or 64-bit integers, unrounded. `scratch` is device memory of ReferenceScratchBytes. Neither the
// result nor what is reduced may be empty.
std::size_t ReferenceScratchBytes(const ReduceProblem& problem);
cudaError_t ReferenceReduce(const ReduceProblem& problem, const Operands& operands, double* out,
                            void* scratch, cudaStream_t stream);

// Rounded to the type of the result.
cudaError_t ReferencePair(const PairMap& problem, const Operands& operands, double* out, cudaStream_t stream);

// Counted on the device; all zeros to begin with.
struct Differences {
  unsigned long long count = 0;
  unsigned long long first = ~0ull;  // index of the first wrong byte or element
};

// Bytes that differ. Addresses are aligned to 16 bytes.
cudaError_t CompareBytes(const void* got, const void* want, std::size_t bytes, Differences* device,
                         cudaStream_t stream);

// Elements, of a real type, with |got - want| > absolute + relative * |want|; NaN is right where NaN is
// wanted, and an infinity where that or more than the type has is.
cudaError_t CompareNumbers(const void* got, DType dtype, const double* want, std::int64_t count,
                           double absolute, double relative, Differences* device, cudaStream_t stream);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_HARNESS_REFERENCE_H_
