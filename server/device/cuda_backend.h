// The backend for NVIDIA GPUs.
#ifndef WARPLINE_SERVER_DEVICE_CUDA_BACKEND_H_
#define WARPLINE_SERVER_DEVICE_CUDA_BACKEND_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
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
  // CUDA ordinals or UUIDs (FindNamedDevices), all of which must be usable. Empty: all usable devices of the
  // node.
  std::vector<std::string> devices;
  // Device memory of a lane: inputs, outputs, scratch and workspace of one program. Programs that need more
  // take it from the device's pool while they run.
  std::size_t lane_bytes = kCudaLaneBytes;
  // The number of lanes that will be created on each device.
  int lanes = 1;
  // Memory of each device for its lanes and its pool together. If a device has less free memory, less is
  // taken, unless the figure is exact: see DecideDeviceBytes.
  std::size_t device_bytes = std::size_t{1} << 30;
  bool exact_device_bytes = false;
  // Memory on each device for resident tensors, in addition to the rest; it grows as tensors are made. Not
  // set: half of what is left when everything else has its memory.
  std::optional<std::size_t> resident_bytes = 0;
  // The same for uploads and streamed results. Not set: a quarter of what is left.
  std::optional<std::size_t> upload_bytes = 0;
  // How many known programs a lane keeps, and how much device memory their graphs may use.
  std::size_t graph_cache_entries = 256;
  std::size_t graph_cache_bytes = std::size_t{64} << 20;
  // The sizes that decide which path a program uses, and how large programs are cut.
  PathLimits paths;
  CutOptions cutting;
  // Time the transfers and steps of one in `timing_sample` jobs; 0: of none.
  int timing_sample = 128;
  // Also time a job if its lane has not timed one for this long: under low load, timing slows nobody down.
  absl::Duration timing_period = absl::Milliseconds(100);
  // Multiprocessors of each device that are reserved for `urgent` jobs (StagedProgram); 0: none.
  int kept_multiprocessors = 0;
  // Measure the roofline of each device at start, for warpline_kernel_roof_ratio.
  bool measure_roofline = false;
  // Called once, from any thread, when a GPU's context is lost. The process can then only exit.
  std::function<void(const absl::Status&)> context_lost;
  // If set, called for each sampled job that was not cut into pieces, whether it ran as a graph or not.
  // Called from several threads.
  std::function<void(const JobTimeline&)> on_timeline;
  // May be null. Outlives the backend.
  Metrics* metrics = nullptr;
};

// UNAVAILABLE if there is no driver or no device, or if too little memory is free on any device that
// `options.devices` names; if it names none, only if too little is free on every device.
absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(const CudaBackendOptions& options);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUDA_BACKEND_H_
