#include "kernels/gpu/stream_flag.h"

#include <cudaTypedefs.h>

#include "kernels/gpu/driver_function.h"
#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"

namespace warpline::gpu {
namespace {

PFN_cuStreamWriteValue32_v11070 StreamWriteValue32() {
  constexpr unsigned kVersion = 11070;  // the first version that needs no device attribute for this
  static const auto function =
      FindDriverFunction<PFN_cuStreamWriteValue32_v11070>("cuStreamWriteValue32", kVersion);
  return function;
}

}  // namespace

absl::StatusOr<StreamFlag> StreamFlag::Create() {
  if (StreamWriteValue32() == nullptr) {
    return absl::UnavailableError("the CUDA driver has no cuStreamWriteValue32");
  }
  ASSIGN_OR_RETURN(PinnedMemory memory, PinnedMemory::Allocate(sizeof(std::uint32_t)));
  return StreamFlag(std::move(memory));
}

absl::Status StreamFlag::Enqueue(cudaStream_t stream) {
  ++sections_;
  // The default flag orders the write after all earlier writes of the stream, for the whole system.
  const CUresult result = StreamWriteValue32()(stream, reinterpret_cast<CUdeviceptr>(memory_.bytes().data()),
                                               sections_, CU_STREAM_WRITE_VALUE_DEFAULT);
  // The runtime and the driver use the same error numbers. Errors of earlier kernels may be reported here.
  return ToStatus(static_cast<cudaError_t>(result), "enqueuing a flag");
}

}  // namespace warpline::gpu
