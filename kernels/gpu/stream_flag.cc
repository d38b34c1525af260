#include "kernels/gpu/stream_flag.h"

#include <cudaTypedefs.h>

#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"

namespace warpline::gpu {
namespace {

// From the driver that is here: linking to it would keep the program from starting where there is none.
PFN_cuStreamWriteValue32_v11070 FindStreamWriteValue32() {
  constexpr unsigned kVersion = 11070;  // the first whose words need no attribute of the device
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &function, kVersion,
                                                             cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<PFN_cuStreamWriteValue32_v11070>(function);
}

PFN_cuStreamWriteValue32_v11070 StreamWriteValue32() {
  static const auto function = FindStreamWriteValue32();
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
  // The default orders the write behind all others of the stream, for the whole system.
  const CUresult result = StreamWriteValue32()(stream, reinterpret_cast<CUdeviceptr>(memory_.bytes().data()),
                                               sections_, CU_STREAM_WRITE_VALUE_DEFAULT);
  // The runtime has the driver's numbers for its errors. What an earlier kernel did may come to light here.
  return ToStatus(static_cast<cudaError_t>(result), "enqueuing a flag");
}

}  // namespace warpline::gpu
