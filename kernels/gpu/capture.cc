#include "kernels/gpu/capture.h"

#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"

namespace warpline::gpu {

absl::StatusOr<Capture> Capture::Begin(cudaStream_t stream) {
  RETURN_IF_ERROR(
      ToStatus(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a capture"));
  return Capture(stream);
}

Capture::~Capture() {
  if (stream_ == nullptr) return;
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream_, &graph) == cudaSuccess && graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();
}

absl::StatusOr<cudaGraphNode_t> Capture::LastNode() const {
  cudaStreamCaptureStatus status;
  const cudaGraphNode_t* dependencies = nullptr;
  std::size_t count = 0;
  RETURN_IF_ERROR(
      ToStatus(cudaStreamGetCaptureInfo(stream_, &status, nullptr, nullptr, &dependencies, nullptr, &count),
               "reading the capture"));
  if (status != cudaStreamCaptureStatusActive || count != 1) {
    return absl::InternalError("a captured stream is not one chain of nodes");
  }
  return dependencies[0];
}

absl::StatusOr<Graph> Capture::End() && {
  cudaGraph_t graph = nullptr;
  RETURN_IF_ERROR(
      ToStatus(cudaStreamEndCapture(std::exchange(stream_, nullptr), &graph), "ending a capture"));
  return Graph(graph);
}

}  // namespace warpline::gpu
