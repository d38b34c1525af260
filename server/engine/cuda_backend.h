// The backend for NVIDIA GPUs.
#ifndef WARPLINE_SERVER_ENGINE_CUDA_BACKEND_H_
#define WARPLINE_SERVER_ENGINE_CUDA_BACKEND_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/backend.h"
#include "server/observe/metrics.h"

namespace warpline {

struct CudaBackendOptions {
  // CUDA ordinals; empty: all of the node.
  std::vector<int> devices;
  // Device memory of a lane: inputs, outputs, scratch and workspace of one program.
  std::size_t lane_bytes = std::size_t{640} << 20;
  // Graphs that a lane keeps.
  std::size_t graph_cache_entries = 256;
  // Time the transfers and steps of one job in so many; 0: none.
  int timing_sample = 16;
  // Measure the roofline of each device at start, for warpline_kernel_roof_ratio.
  bool measure_roofline = false;
  // Called once, from any thread, when a GPU's context is lost: the process can only end.
  std::function<void(const absl::Status&)> context_lost;
  // May be null. Outlives the backend.
  Metrics* metrics = nullptr;
};

// UNAVAILABLE if there is no driver or no device.
absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(const CudaBackendOptions& options);

}  // namespace warpline

#endif  // WARPLINE_SERVER_ENGINE_CUDA_BACKEND_H_
