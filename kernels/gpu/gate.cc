#include "kernels/gpu/gate.h"

#include "kernels/gpu/gate_kernel.h"
#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"

namespace warpline::gpu {

absl::StatusOr<Gate> Gate::Create() {
  ASSIGN_OR_RETURN(PinnedMemory memory, PinnedMemory::Allocate(2 * sizeof(std::uint32_t)));
  return Gate(std::move(memory));
}

absl::Status Gate::Enqueue(cudaStream_t stream, std::size_t steps) {
  ++turn_;
  auto* const words = reinterpret_cast<std::uint32_t*>(memory_.bytes().data());
  const std::uint64_t wait = kMaxWaitNanoseconds + steps * kMaxWaitNanosecondsPerStep;
  return ToStatus(LaunchGate(words, words + 1, turn_, wait, stream), "closing a gate");
}

}  // namespace warpline::gpu
