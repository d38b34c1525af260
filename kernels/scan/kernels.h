// The CUDA kernels of scans. Limits and workspaces are those of the rows in variants.cc.
#ifndef WARPLINE_KERNELS_SCAN_KERNELS_H_
#define WARPLINE_KERNELS_SCAN_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda_variants.h"
#include "kernels/problem.h"

namespace warpline {

// Supports every scan. Results have the same bits from run to run.
std::size_t ScanWorkspaceBytes(const ScanProblem& problem, const DeviceTraits& traits);
cudaError_t LaunchScan(const ScanProblem& problem, const Operands& operands, const CudaContext& context,
                       cudaStream_t stream);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_SCAN_KERNELS_H_
