// Memory of one GPU for programs that do not fit into the memory of a lane.
#ifndef WARPLINE_SERVER_DEVICE_DEVICE_POOL_H_
#define WARPLINE_SERVER_DEVICE_DEVICE_POOL_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/gpu/handle.h"
#include "server/memory/buffer.h"
#include "server/observe/metrics.h"

namespace warpline {

// A pool of the CUDA runtime, which is grown to its size once, so that nobody waits for cudaMalloc later, and
// keeps what it has. It gives out blocks on a stream of its own and waits for it. That stream is idle but for
// this, so a block takes some microseconds, and whoever gets it may use it on any stream at once.
//
// Thread-safe. Outlives its blocks.
class DevicePool {
 public:
  // Sizes of pools are multiples of this, by which the runtime lets them grow.
  static constexpr std::size_t kUnit = std::size_t{32} << 20;

  // On the device that is current. `ordinal` is the device's in DeviceInfo. `bytes` is a multiple of kUnit.
  static absl::StatusOr<std::unique_ptr<DevicePool>> Create(int ordinal, std::size_t bytes, Metrics& metrics);
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  std::size_t bytes() const { return bytes_; }

  // Drop the buffer only when the host has seen the end of all work that uses it. RESOURCE_EXHAUSTED if the
  // pool has no block of this size, which fragments can cause even where their sum would do. The device is
  // current.
  absl::StatusOr<Buffer> Take(std::size_t bytes);

 private:
  using Pool = gpu::UniqueHandle<cudaMemPool_t, &cudaMemPoolDestroy>;

  DevicePool(int ordinal, std::size_t bytes, Metrics& metrics);
  absl::Status Grow();
  void GiveBack(void* block, std::size_t bytes);

  const int ordinal_;
  const std::size_t bytes_;
  Gauge used_, free_;
  Pool pool_;
  gpu::Stream stream_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_DEVICE_POOL_H_
