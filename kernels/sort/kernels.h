// The CUDA kernels that sort and search. Limits and workspaces are those of the rows in variants.cc.
#ifndef WARPLINE_KERNELS_SORT_KERNELS_H_
#define WARPLINE_KERNELS_SORT_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda_variants.h"
#include "kernels/problem.h"

namespace warpline {

// Uses one CTA per row, which sorts it in shared memory: for rows of up to kMaxBlockRow elements.
inline constexpr std::int64_t kMaxBlockRow = 8192;
cudaError_t LaunchSortBlocks(const SortProblem& problem, const Operands& operands, const CudaContext& context,
                             cudaStream_t stream);

// CUB's radix sort over all elements, first by element and then, if there are several rows, by row. Positions
// are counted in 32 bits, so at most 2^32 - 1 elements.
inline constexpr std::int64_t kMaxRadixElements = 0xffff'ffff;
std::size_t SortRadixWorkspaceBytes(const SortProblem& problem);
cudaError_t LaunchSortRadix(const SortProblem& problem, const Operands& operands, const CudaContext& context,
                            cudaStream_t stream);

// Reads each row once, finds the first `taken` elements of its sorted order, and sorts these: at most
// kMaxSelected.
inline constexpr std::int64_t kMaxSelected = 128;
std::size_t SelectWorkspaceBytes(const SortProblem& problem, const DeviceTraits& traits);
cudaError_t LaunchSelect(const SortProblem& problem, const Operands& operands, const CudaContext& context,
                         cudaStream_t stream);

// Uses a binary search for each needle.
cudaError_t LaunchSearch(const SearchProblem& problem, const Operands& operands, const CudaContext& context,
                         cudaStream_t stream);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_SORT_KERNELS_H_
