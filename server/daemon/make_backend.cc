#include "server/daemon/make_backend.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "server/base/usable_memory.h"
#include "server/device/cpu_backend.h"
#include "server/observe/log.h"
#ifdef WARPLINE_HAVE_CUDA
#include "kernels/gpu/device_count.h"
#include "server/device/cuda_backend.h"
#endif

namespace warpline {
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const ServerOptions& options, Metrics& metrics,
                                                     std::function<void(const absl::Status&)> context_lost) {
#ifdef WARPLINE_HAVE_CUDA
  if (options.backend != "cpu") {
    auto cuda = CreateCudaBackend({.devices = options.devices,
                                   .lanes = options.Lanes(true),
                                   .device_bytes = static_cast<std::size_t>(options.DeviceBytes(true)),
                                   .exact_device_bytes = options.device_bytes.has_value(),
                                   .resident_bytes = options.resident_bytes,
                                   .upload_bytes = options.upload_bytes,
                                   .timing_sample = options.timing_sample,
                                   .kept_multiprocessors = options.kept_multiprocessors,
                                   .measure_roofline = options.timing_sample > 0,
                                   .context_lost = std::move(context_lost),
                                   .metrics = &metrics});
    // A GPU without free memory counts as unusable, unless the operator has set how much of it to take.
    const bool usable = !absl::IsUnavailable(cuda.status()) &&
                        (!absl::IsResourceExhausted(cuda.status()) || options.device_bytes.has_value());
    if (usable || options.backend == "cuda") return cuda;
    // The operator should know if there is an unused GPU.
    Log(gpu::GpuIsPresent() ? "warning" : "info", "backend cpu chosen",
        {{"reason", std::string(cuda.status().message())}});
    if (!options.devices.empty()) Log("warning", "--devices does not count on the cpu backend");
  }
#else
  static_cast<void>(context_lost);
  if (options.backend == "cuda") {
    return absl::UnavailableError("--backend=cuda: this warplined was built without CUDA");
  }
  if (options.backend == "auto") Log("info", "backend cpu chosen", {{"reason", "built without CUDA"}});
#endif
  const auto available = static_cast<std::int64_t>(AvailableMemoryBytes());
  return CreateCpuBackend({.lanes = options.Lanes(false),
                           .device_bytes = static_cast<std::size_t>(options.DeviceBytes(false)),
                           .exact_device_bytes = options.device_bytes.has_value(),
                           .resident_bytes = static_cast<std::size_t>(options.CpuResidentBytes(available)),
                           .upload_bytes = static_cast<std::size_t>(options.CpuUploadBytes(available)),
                           .timing = options.timing_sample > 0,
                           .metrics = &metrics});
}

}  // namespace warpline
