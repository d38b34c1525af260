// The backend for machines without a GPU: the same problems on the lanes' own threads.
#ifndef WARPLINE_SERVER_DEVICE_CPU_BACKEND_H_
#define WARPLINE_SERVER_DEVICE_CPU_BACKEND_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "server/device/backend.h"
#include "server/observe/metrics.h"

namespace warpline {

struct CpuBackendOptions {
  // Scratch memory of a lane (intermediates, workspace); address space that costs nothing until touched.
  std::size_t lane_bytes = std::size_t{1} << 30;
  // Time every step; reading a clock is cheap here.
  bool timing = true;
  // May be null. Outlives the backend.
  Metrics* metrics = nullptr;
};

absl::StatusOr<std::unique_ptr<Backend>> CreateCpuBackend(const CpuBackendOptions& options);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CPU_BACKEND_H_
