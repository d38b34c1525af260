// The state that the lanes of one GPU share.
#ifndef WARPLINE_SERVER_DEVICE_CUDA_DEVICE_H_
#define WARPLINE_SERVER_DEVICE_CUDA_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/cuda_variants.h"
#include "kernels/gemm/cublaslt.h"
#include "kernels/gpu/handle.h"
#include "kernels/gpu/partition.h"
#include "server/device/backend.h"
#include "server/device/completion.h"
#include "server/device/cut_pipeline.h"
#include "server/device/device_pool.h"
#include "server/device/event_overhead.h"
#include "server/device/roofline.h"
#include "server/device/transfers.h"
#include "server/observe/metrics.h"

namespace warpline {

struct CudaDevice {
  DeviceInfo info;
  int cuda_ordinal = 0;             // info.ordinal counts only devices in use
  std::vector<int> cuda_ordinals;   // of all devices in use
  bool uses_host_pointers = false;  // staging memory has the same addresses on the device
  std::size_t kind = 0;             // index among the kinds of the node: see CudaPlan
  CudaContext context;              // points to *cublaslt
  std::unique_ptr<CublasLt> cublaslt;
  Roofline roofline;
  double event_overhead = 0;  // see MeasureEventOverhead
  // The multiprocessors for jobs that are not urgent; not set: those jobs may use all. The partition is
  // created before the lanes, because their streams belong to it.
  std::optional<gpu::Partition> partition;
  gpu::DeviceBytes default_scalars;  // a StepScalars
  gpu::Event epoch;                  // recorded when the device was opened
  // The number of jobs that run now, and of all jobs so far. Together they tell whether a job had the device
  // to itself. A job counts until it no longer uses the device, so at most one of the running jobs found
  // `running` at 0 when it started.
  std::atomic<int> running = 0;
  std::atomic<std::uint64_t> launched = 0;
  std::optional<CutPipeline> cuts;  // always set; used by the job that found `running` at 0
  std::unique_ptr<DevicePool> pool;
  std::unique_ptr<DevicePool> resident;    // for resident tensors; null if there is no memory for any
  std::optional<Transfers> transfers;      // always set
  std::unique_ptr<Completion> completion;  // last, because its callbacks use the other members
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUDA_DEVICE_H_
