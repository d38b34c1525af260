// Owners of CUDA handles: move-only, each with exactly one handle. Destructors ignore errors, because nothing
// can be done if the runtime is unloading or the context is lost.
#ifndef WARPLINE_KERNELS_GPU_HANDLE_H_
#define WARPLINE_KERNELS_GPU_HANDLE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <type_traits>

#include "absl/status/statusor.h"

namespace warpline::gpu {

template <typename Handle, auto kDestroy>
struct HandleDeleter {
  using pointer = Handle;
  void operator()(Handle handle) const { static_cast<void>(kDestroy(handle)); }
};
template <typename Handle, auto kDestroy>
using UniqueHandle = std::unique_ptr<std::remove_pointer_t<Handle>, HandleDeleter<Handle, kDestroy>>;

// A non-blocking stream: it does not synchronise with the legacy default stream.
using Stream = UniqueHandle<cudaStream_t, &cudaStreamDestroy>;
absl::StatusOr<Stream> CreateStream();
// Creates a stream whose kernels get free multiprocessors before those of other streams.
absl::StatusOr<Stream> CreateUrgentStream();

using Event = UniqueHandle<cudaEvent_t, &cudaEventDestroy>;
absl::StatusOr<Event> CreateEvent();       // cannot measure time; cheaper to record
absl::StatusOr<Event> CreateTimedEvent();  // for cudaEventElapsedTime

using Graph = UniqueHandle<cudaGraph_t, &cudaGraphDestroy>;
using GraphExec = UniqueHandle<cudaGraphExec_t, &cudaGraphExecDestroy>;
absl::StatusOr<GraphExec> Instantiate(const Graph& graph);

// Memory of the device that is current at the time of the call.
using DeviceBytes = UniqueHandle<void*, &cudaFree>;
absl::StatusOr<DeviceBytes> AllocateDevice(std::size_t bytes);

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_HANDLE_H_
