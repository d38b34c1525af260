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
  // Scratch memory (intermediates, workspace) that a lane keeps. Programs that need more get it from the
  // system for as long as they run.
  static constexpr std::size_t kLaneBytes = std::size_t{16} << 20;
  std::size_t lane_bytes = kLaneBytes;
  // The number of lanes that will be created.
  int lanes = 1;
  // The memory of all lanes and of programs that need more than a lane keeps, together. At most half of the
  // memory that the process can use is taken, unless the figure is exact: see DecideDeviceBytes.
  std::size_t device_bytes = std::size_t{1} << 30;
  bool exact_device_bytes = false;
  // The memory of all resident tensors together. It is taken when the tensors are made.
  std::size_t resident_bytes = 0;
  std::size_t upload_bytes = 0;
  // Time every step; reading a clock is cheap here.
  bool timing = true;
  // May be null. Outlives the backend.
  Metrics* metrics = nullptr;
};

absl::StatusOr<std::unique_ptr<Backend>> CreateCpuBackend(const CpuBackendOptions& options);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CPU_BACKEND_H_
