#include "kernels/gpu/handle.h"

#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"

namespace warpline::gpu {

absl::StatusOr<Stream> CreateStream() {
  cudaStream_t stream = nullptr;
  RETURN_IF_ERROR(ToStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream"));
  return Stream(stream);
}

absl::StatusOr<Stream> CreateUrgentStream() {
  int least = 0, greatest = 0;
  RETURN_IF_ERROR(ToStatus(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities"));
  cudaStream_t stream = nullptr;
  RETURN_IF_ERROR(
      ToStatus(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest), "creating a stream"));
  return Stream(stream);
}

absl::StatusOr<Event> CreateEvent() {
  cudaEvent_t event = nullptr;
  RETURN_IF_ERROR(ToStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event"));
  return Event(event);
}

absl::StatusOr<Event> CreateTimedEvent() {
  cudaEvent_t event = nullptr;
  RETURN_IF_ERROR(ToStatus(cudaEventCreate(&event), "creating a timed event"));
  return Event(event);
}

absl::StatusOr<GraphExec> Instantiate(const Graph& graph) {
  cudaGraphExec_t exec = nullptr;
  RETURN_IF_ERROR(ToStatus(cudaGraphInstantiate(&exec, graph.get(), 0), "instantiating a graph"));
  return GraphExec(exec);
}

absl::StatusOr<DeviceBytes> AllocateDevice(std::size_t bytes) {
  void* pointer = nullptr;
  RETURN_IF_ERROR(ToStatus(cudaMalloc(&pointer, bytes), "allocating device memory"));
  return DeviceBytes(pointer);
}

}  // namespace warpline::gpu
