// The CUDA kernels that move elements by indices. The tables in variants.cc say which problems each kernel
// supports and how much workspace it needs.
#ifndef WARPLINE_KERNELS_TAKE_KERNELS_H_
#define WARPLINE_KERNELS_TAKE_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda_variants.h"
#include "kernels/problem.h"

namespace warpline {

// Each thread moves units of up to 16 bytes.
cudaError_t LaunchTake(const TakeProblem& problem, const Operands& operands, const CudaContext& context,
                       cudaStream_t stream);

// Finds, for each element of x, the last position whose index selects it, then writes each element once.
// Positions are counted in 32 bits, so there can be at most 2^32 - 2 indices.
inline constexpr std::int64_t kMaxPutPlaces = 0xffff'fffe;
std::size_t PutWorkspaceBytes(const PutProblem& problem);
cudaError_t LaunchPut(const PutProblem& problem, const Operands& operands, const CudaContext& context,
                      cudaStream_t stream);

// Counts the selected rows of each tile, numbers them, and copies them. Rows are numbered in 32 bits, so
// there can be at most 2^32 - 1.
inline constexpr std::int64_t kMaxCompressRows = 0xffff'ffff;
std::size_t CompressWorkspaceBytes(const CompressProblem& problem);
cudaError_t LaunchCompress(const CompressProblem& problem, const Operands& operands,
                           const CudaContext& context, cudaStream_t stream);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TAKE_KERNELS_H_
