// Stream capture as a scope: work enqueued on the stream between Begin and End becomes a graph.
#ifndef WARPLINE_KERNELS_GPU_CAPTURE_H_
#define WARPLINE_KERNELS_GPU_CAPTURE_H_

#include <cuda_runtime_api.h>

#include <utility>

#include "absl/status/statusor.h"
#include "kernels/gpu/handle.h"

namespace warpline::gpu {

// Uses the thread-local mode: calls of other threads (allocations, event queries) neither join nor break the
// capture. If End was not called, the destructor ends the capture and drops its contents.
class Capture {
 public:
  static absl::StatusOr<Capture> Begin(cudaStream_t stream);
  Capture(Capture&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Capture& operator=(Capture&&) = delete;
  ~Capture();

  // Returns the node that the next one would depend on. In a linear stream this is the last captured node.
  absl::StatusOr<cudaGraphNode_t> LastNode() const;
  absl::StatusOr<Graph> End() &&;

 private:
  explicit Capture(cudaStream_t stream) : stream_(stream) {}
  cudaStream_t stream_;
};

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_CAPTURE_H_
