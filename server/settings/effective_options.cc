// The limits that the server chooses for a machine if the options do not set them.
#include <algorithm>
#include <limits>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "server/device/lane_memory.h"
#include "server/settings/options.h"

namespace warpline {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// The longest device time of one request. A client may make others wait that long, because a lane cannot be
// taken back from a running job.
constexpr double kMaxSecondsOnCuda = 10, kMaxSecondsOnCpu = 120;

}  // namespace

std::int64_t ServerOptions::RegionBytes(std::int64_t available) const {
  return region_bytes.value_or(available / 4);
}

std::vector<std::string> ServerOptions::RegionPaths() const {
  constexpr absl::string_view kUnix = "unix:";
  std::vector<std::string> paths;
  for (const std::string& address : listen) {
    if (absl::StartsWith(address, kUnix)) paths.push_back(address.substr(kUnix.size()) + ".regions");
  }
  if (!regions.empty()) paths.push_back(regions);
  return paths;
}

int ServerOptions::Lanes(bool cuda) const {
  // On the CPU a lane is a core, and none should be kept idle. So the lane for short jobs is an additional
  // one.
  const int more = cuda ? 0 : LanesKept(false);
  if (lanes != 0) return lanes + more;
  return cuda ? 8 : static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 4u)) + more;
}

std::int64_t ServerOptions::PinnedBytes(bool cuda) const {
  return std::max((cuda ? 8 : 4) * max_inline_bytes, kMiB);
}

std::int64_t ServerOptions::DeviceBytes(bool cuda) const {
  if (device_bytes) return *device_bytes;
  // The default is enough for one program of full size per lane at the same time, with 64 MiB each for
  // workspace and intermediates. On the CPU it is enough for two programs, because the machine needs its
  // memory for other things too.
  const std::int64_t of_program = 2 * max_inline_bytes + 64 * kMiB;
  if (!cuda) return 2 * of_program;
  // Programs of full size do not use the lanes' own memory, which is part of the same total.
  return Lanes(true) * (of_program + static_cast<std::int64_t>(kCudaLaneBytes));
}

std::int64_t ServerOptions::TinyPinnedBytes(bool cuda) const {
  return std::min(PinnedBytes(cuda) / 8, 64 * kMiB);
}

int ServerOptions::LanesKept(bool cuda) const { return cuda ? Lanes(true) / 4 : 1; }

double ServerOptions::ShortSeconds(bool cuda) const {
  // A GPU runs the kernels of short jobs before those of long jobs, which are delayed by that time. The CPU
  // has an additional lane for short jobs: one more thread than cores while long jobs run.
  return cuda ? 100e-6 : 10e-3;
}

std::size_t ServerOptions::ShortBytes(bool cuda) const {
  // On a GPU this many bytes keep PCIe busy for some 50 us.
  return cuda ? std::size_t{2} << 20 : std::numeric_limits<std::size_t>::max();
}

double ServerOptions::RunningSecondsMax(bool cuda) const {
  // Lanes share a GPU, but they do not share the cores of a CPU.
  return cuda ? kMaxSecondsOnCuda : std::numeric_limits<double>::infinity();
}

double ServerOptions::MaxDeviceSeconds(bool cuda) const {
  return max_device_seconds.value_or(cuda ? kMaxSecondsOnCuda : kMaxSecondsOnCpu);
}

int ServerOptions::Workers(int cpus) const {
  // Eight threads reach the memory bandwidth of a socket.
  return std::clamp(cpus / 2, 1, 8);
}

int ServerOptions::Compilers(int cpus) const { return std::clamp(cpus / 4, 1, 4); }

int ServerOptions::RpcThreads(int cpus) const {
  // Measured on H200 (docs/benchmarks/2026-11-22-h200-load.md): a second thread allowed a third more small
  // requests, and a third one at most a tenth more.
  return Look(cpus) > absl::ZeroDuration() && cpus >= 8 ? 2 : 1;
}

int ServerOptions::TransferThreads(int cpus) const {
  // Eight connections transfer some 20 GB/s; one thread handles 5 GB/s of that.
  return std::clamp(cpus / 2 - 1, 0, 7);
}

int ServerOptions::Crew(int cpus) const {
  // Four threads launch some 100,000 small jobs a second on a GPU, and six not more, because they wait for
  // each other in the driver. If threads must not poll, handing over a request costs more than it saves.
  return Look(cpus) > absl::ZeroDuration() ? std::clamp(cpus / 4, 1, 4) : 0;
}

absl::Duration ServerOptions::Look(int cpus) const {
  // Longer than a client on the same machine needs from a response to its next request.
  constexpr absl::Duration kLook = absl::Microseconds(100);
  return cpus >= 4 ? kLook : absl::ZeroDuration();
}

int ServerOptions::MaxConnections(std::int64_t descriptors) const {
  if (max_connections != 0) return max_connections;
  // One descriptor of gRPC for each connection, and one of the acceptor.
  constexpr std::int64_t kPerConnection = 2;
  // The descriptors of the program itself and its devices.
  constexpr std::int64_t kOthers = 64;
  // An eighth is for regions.
  const std::int64_t left =
      descriptors - descriptors / 8 - static_cast<std::int64_t>(MaxHttpConnections(descriptors)) - kOthers;
  return static_cast<int>(std::clamp<std::int64_t>(left / kPerConnection, 16, 10000));
}

std::size_t ServerOptions::MaxHttpConnections(std::int64_t descriptors) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(descriptors / 8, 8, 256));
}

std::int64_t ServerOptions::CpuResidentBytes(std::int64_t available) const {
  const std::int64_t others = PinnedBytes(false) + DeviceBytes(false);
  return resident_bytes.value_or((available - std::min(available, others)) / 2);
}

std::int64_t ServerOptions::CpuUploadBytes(std::int64_t available) const {
  const std::int64_t others = PinnedBytes(false) + DeviceBytes(false);
  return upload_bytes.value_or((available - std::min(available, others)) / 8);
}

std::int64_t ServerOptions::WorstCaseMemoryBytes(bool cuda, std::int64_t available) const {
  // Admitted requests hold their slices until they are staged; results lie in staging memory.
  // Small requests may have 64 MiB more (Admission).
  const std::int64_t requests = GrpcMemoryBytes() + MaxJobBytes() + 64 * kMiB;
  const std::int64_t staging = PinnedBytes(cuda) + TinyPinnedBytes(cuda);
  const std::int64_t of_cpu =
      cuda ? 0 : DeviceBytes(false) + CpuResidentBytes(available) + CpuUploadBytes(available);
  return requests + staging + RegionBytes(available) + of_cpu;
}

}  // namespace warpline
