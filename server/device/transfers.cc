#include "server/device/transfers.h"

#include <utility>

#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"

namespace warpline {

using gpu::ToStatus;

absl::StatusOr<Transfers> Transfers::Create() {
  Transfers transfers;
  ASSIGN_OR_RETURN(transfers.in_, gpu::CreateStream());
  ASSIGN_OR_RETURN(transfers.out_, gpu::CreateStream());
  return transfers;
}

// Only valid before the first transfer.
Transfers::Transfers(Transfers&& other) noexcept : in_(std::move(other.in_)), out_(std::move(other.out_)) {}

absl::StatusOr<gpu::Event> Transfers::TakeEvent() {
  {
    MutexLock lock(&mutex_);
    if (!idle_events_.empty()) {
      gpu::Event event = std::move(idle_events_.back());
      idle_events_.pop_back();
      return event;
    }
  }
  return gpu::CreateEvent();
}

absl::Status Transfers::Enqueue(const Transfer& transfer, cudaEvent_t end) {
  const bool to_device = transfer.direction == Transfer::Direction::kToDevice;
  const cudaStream_t stream = to_device ? in_.get() : out_.get();
  const std::span<std::byte> to = to_device ? transfer.on_device : transfer.on_host;
  const std::span<std::byte> from = to_device ? transfer.on_host : transfer.on_device;
  RETURN_IF_ERROR(
      ToStatus(cudaMemcpyAsync(to.data(), from.data(), to.size(),
                               to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, stream),
               "copying a part of a resident tensor"));
  const absl::Status recorded = ToStatus(cudaEventRecord(end, stream), "recording an event");
  // The memory must not be used by anybody else while the copy runs.
  if (!recorded.ok()) cudaStreamSynchronize(stream);
  return recorded;
}

void Transfers::Start(const Transfer& transfer, Completion& completion,
                      absl::AnyInvocable<void(absl::Status)> done) {
  absl::StatusOr<gpu::Event> event = TakeEvent();
  absl::Status status = event.ok() ? Enqueue(transfer, event->get()) : event.status();
  if (!status.ok()) {
    completion.ReportError(status);
    return done(std::move(status));
  }
  const cudaEvent_t end = event->get();
  completion.Watch(end,
                   [this, event = *std::move(event), done = std::move(done)](absl::Status status) mutable {
                     {
                       MutexLock lock(&mutex_);
                       idle_events_.push_back(std::move(event));
                     }
                     done(std::move(status));
                   });
}

}  // namespace warpline
