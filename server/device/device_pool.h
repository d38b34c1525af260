// Memory of one GPU that is allocated in blocks while the daemon runs: for programs that do not fit into the
// memory of a lane, and for resident tensors.
#ifndef WARPLINE_SERVER_DEVICE_DEVICE_POOL_H_
#define WARPLINE_SERVER_DEVICE_DEVICE_POOL_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/gpu/handle.h"
#include "server/device/kept_blocks.h"
#include "server/memory/buffer.h"
#include "server/observe/metrics.h"

namespace warpline {

// A pool of the CUDA runtime, which never gives memory back to the device. It allocates blocks on a stream of
// its own and waits for it. That stream does nothing else, so a block takes some microseconds and may be used
// on any stream at once. The pool keeps some of the blocks that are returned, and hands them out again
// without asking the runtime.
//
// Thread-safe. Outlives its blocks.
class DevicePool {
 public:
  // Pool sizes are multiples of this, the unit in which the runtime lets pools grow.
  static constexpr std::size_t kUnit = std::size_t{32} << 20;

  struct Options {
    int ordinal = 0;        // DeviceInfo::ordinal
    std::size_t bytes = 0;  // a multiple of kUnit
    // Takes all of its memory at once, so that nobody waits for cudaMalloc later; otherwise it grows block by
    // block.
    bool grown = true;
    // The pool's values of label `state` in warpline_device_memory_bytes.
    std::string used_state = "pool_used", free_state = "pool_free";
  };

  // Creates the pool on the current device.
  static absl::StatusOr<std::unique_ptr<DevicePool>> Create(const Options& options, Metrics& metrics);
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  std::size_t bytes() const { return bytes_; }

  // Lets another device read and write the pool's blocks, if the hardware connects the two. Otherwise copies
  // between them go through the host.
  absl::Status LetReach(int cuda_ordinal);

  // Takes a block; an empty buffer for 0 bytes. Destroy the buffer only after the host has seen the end of
  // all work that uses it. RESOURCE_EXHAUSTED if the pool has no free block of this size, which can happen
  // even if enough bytes are free in fragments. The pool's device must be current.
  absl::StatusOr<Buffer> Take(std::size_t bytes);
  // Returns whether this many bytes of the pool are unused. If they are fragmented, Take may still need more
  // memory of the device.
  bool HasAtHand(std::size_t bytes) const;

 private:
  using Pool = gpu::UniqueHandle<cudaMemPool_t, &cudaMemPoolDestroy>;

  DevicePool(const Options& options, Metrics& metrics);
  absl::Status KeepAll();
  absl::Status Grow();
  // Takes a block from the runtime, not from kept_.
  absl::StatusOr<KeptBlocks::Block> TakeNew(std::size_t bytes);
  void Free(const std::vector<KeptBlocks::Block>& blocks);

  const int ordinal_;
  int cuda_ordinal_ = 0;
  const std::size_t bytes_;
  Gauge used_, free_;
  KeptBlocks kept_;  // holes in the pool; Take frees them when it finds no room
  Pool pool_;
  gpu::Stream stream_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_DEVICE_POOL_H_
