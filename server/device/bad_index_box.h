// Holds the report of a lane's kernels about indices that are out of range.
#ifndef WARPLINE_SERVER_DEVICE_BAD_INDEX_BOX_H_
#define WARPLINE_SERVER_DEVICE_BAD_INDEX_BOX_H_

#include <cuda_runtime_api.h>

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/gpu/handle.h"
#include "kernels/gpu/pinned_memory.h"
#include "kernels/program.h"
#include "kernels/variant.h"

namespace warpline {

// Used by one program at a time. A program without bad indices costs nothing: kernels write only when they
// find one.
class BadIndexBox {
 public:
  // Creates a box on the current device. `maps_host`: the device can use addresses of page-locked memory.
  static absl::StatusOr<BadIndexBox> Create(bool maps_host);

  BadIndexReport report() const;
  // Must be called before a program is enqueued on the stream, and after the previous program has ended.
  absl::Status Prepare(cudaStream_t stream);
  // Returns the error of a program that has ended; OK if it has no indices or all were in range.
  absl::Status ErrorOf(const Program& program);
  // Clears the report of a program if ErrorOf is not called for it. The program must have ended.
  void Discard();

 private:
  BadIndexBox(gpu::DeviceBytes found, std::optional<gpu::PinnedMemory> seen)
      : found_(std::move(found)), seen_(std::move(seen)) {}

  gpu::DeviceBytes found_;
  std::optional<gpu::PinnedMemory> seen_;
  bool is_clean_ = false;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_BAD_INDEX_BOX_H_
