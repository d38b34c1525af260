#include "server/device/peer_rate.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/gpu/handle.h"
#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"
#include "server/base/clock.h"
#include "server/observe/log.h"

namespace warpline {

using gpu::ToStatus;

namespace {

absl::StatusOr<double> TryToMeasure(const CudaDevice& from, const CudaDevice& to) {
  // Fits into the smallest pool. Smaller copies do not reach the rate of the link.
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  // The first one sets up the link.
  constexpr int kCopies = 4;
  RETURN_IF_ERROR(ToStatus(cudaSetDevice(from.cuda_ordinal), "choosing a device"));
  ASSIGN_OR_RETURN(const Buffer source, from.pool->Take(kBytes));
  RETURN_IF_ERROR(ToStatus(cudaSetDevice(to.cuda_ordinal), "choosing a device"));
  ASSIGN_OR_RETURN(const Buffer copy, to.pool->Take(kBytes));
  ASSIGN_OR_RETURN(const gpu::Stream stream, gpu::CreateStream());
  double least = 1;
  for (int i = 0; i < kCopies; ++i) {
    const MonotonicTime start = MonotonicClock::now();
    RETURN_IF_ERROR(ToStatus(cudaMemcpyPeerAsync(copy.bytes().data(), to.cuda_ordinal, source.bytes().data(),
                                                 from.cuda_ordinal, kBytes, stream.get()),
                             "copying between devices"));
    RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(stream.get()), "copying between devices"));
    least = std::min(least, SecondsSince(start));
  }
  return static_cast<double>(kBytes) / least;
}

}  // namespace

double MeasurePeerRate(const CudaDevice& from, const CudaDevice& to) {
  constexpr double kSlow = 4e9;
  const absl::StatusOr<double> rate = TryToMeasure(from, to);
  if (rate.ok()) return *rate;
  cudaGetLastError();  // clears the error, which the next call would return otherwise
  Log("warning", "the rate of copies between two devices is not known",
      {{"from", absl::StrCat(from.info.ordinal)},
       {"to", absl::StrCat(to.info.ordinal)},
       {"reason", std::string(rate.status().message())}});
  return kSlow;
}

}  // namespace warpline
