// The backend for NVIDIA GPUs.
#ifndef WARPLINE_SERVER_DEVICE_CUDA_BACKEND_H_
#define WARPLINE_SERVER_DEVICE_CUDA_BACKEND_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/device/backend.h"
#include "server/device/choose_path.h"
#include "server/device/cut_program.h"
#include "server/device/lane_memory.h"
#include "server/observe/metrics.h"

namespace warpline {

// When the copies of one sampled job ran, on the device's clock. Unit: seconds since the backend was made.
struct JobTimeline {
  double h2d_begin = 0, h2d_end = 0, d2h_begin = 0, d2h_end = 0;
};

struct CudaBackendOptions {
  // CUDA ordinals, all of which have to be usable; empty: those of the node that are.
  std::vector<int> devices;
  // Device memory of a lane: inputs, outputs, scratch and workspace of one program. Programs that need more
  // take it from the device's pool while they run.
  std::size_t lane_bytes = kCudaLaneBytes;
  // The number of lanes that will be created on each device.
  int lanes = 1;
  // Memory of each device for its lanes and its pool together. A device that has less free gives what it has,
  // unless the figure is exact: see DecideDeviceBytes.
  std::size_t device_bytes = std::size_t{1} << 30;
  bool exact_device_bytes = false;
  // For resident tensors, on each device, beside the rest; grown as they are made. Nothing: half of what is
  // left when everything else has its memory.
  std::optional<std::size_t> resident_bytes = 0;
  // Likewise of uploads and streamed results.
  std::optional<std::size_t> upload_bytes = 0;
  // Known programs that a lane keeps, and device memory that their graphs may take.
  std::size_t graph_cache_entries = 256;
  std::size_t graph_cache_bytes = std::size_t{64} << 20;
  // The sizes that decide how a program runs, and how large ones are cut.
  PathLimits paths;
  CutOptions cutting;
  // Time the transfers and steps of one job in so many; 0: none.
  int timing_sample = 128;
  // And every job of a lane that has timed none for so long: with little to do, timing costs nobody anything.
  absl::Duration timing_period = absl::Milliseconds(100);
  // Multiprocessors of each device that are kept for jobs which are `urgent` (StagedProgram); 0: none.
  int kept_multiprocessors = 0;
  // Measure the roofline of each device at start, for warpline_kernel_roof_ratio.
  bool measure_roofline = false;
  // Called once, from any thread, when a GPU's context is lost: the process can only end.
  std::function<void(const absl::Status&)> context_lost;
  // Called for each sampled job that was copied whole, as a graph or not, if set; from several threads.
  std::function<void(const JobTimeline&)> on_timeline;
  // May be null. Outlives the backend.
  Metrics* metrics = nullptr;
};

// UNAVAILABLE if there is no driver or no device, or if too little memory is left: of a device that
// `options.devices` names, or of each device of the node if it names none.
absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(const CudaBackendOptions& options);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUDA_BACKEND_H_
