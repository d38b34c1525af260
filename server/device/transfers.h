// Copies between the host and resident tensors of one GPU.
#ifndef WARPLINE_SERVER_DEVICE_TRANSFERS_H_
#define WARPLINE_SERVER_DEVICE_TRANSFERS_H_

#include <cuda_runtime_api.h>

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "kernels/gpu/handle.h"
#include "server/base/mutex.h"
#include "server/device/backend.h"
#include "server/device/completion.h"

namespace warpline {

// Has one stream per direction, so that both directions of the bus can be busy at once. The lanes have other
// streams, so neither waits for the other. Thread-safe.
class Transfers {
 public:
  // Makes its streams on the current device.
  static absl::StatusOr<Transfers> Create();
  Transfers(Transfers&& other) noexcept;

  // The device must be current. See Backend::Start. `completion` is the device's.
  void Start(const Transfer& transfer, Completion& completion, absl::AnyInvocable<void(absl::Status)> done);

 private:
  Transfers() = default;
  absl::Status Enqueue(const Transfer& transfer, cudaEvent_t end);
  absl::StatusOr<gpu::Event> TakeEvent();

  gpu::Stream in_, out_;
  Mutex mutex_;
  std::vector<gpu::Event> idle_events_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_TRANSFERS_H_
