#include "server/daemon/core.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/usable_memory.h"
#include "server/daemon/make_backend.h"
#include "server/observe/log.h"
#include "server/rpc/chunk_window.h"

namespace warpline {
namespace {

constexpr std::size_t kMaxRegionsPerOwner = 1024;

std::vector<std::size_t> OfEachDevice(const Backend& backend, std::size_t DeviceInfo::*bytes) {
  std::vector<std::size_t> each;
  for (const DeviceInfo& device : backend.devices()) each.push_back(device.*bytes);
  return each;
}

void ShowDevices(const Backend& backend, Metrics& metrics) {
  for (const DeviceInfo& device : backend.devices()) {
    Log("info", "device",
        {{"ordinal", absl::StrCat(device.ordinal)},
         {"name", device.name},
         {"cc", device.compute_capability},
         {"resident_bytes", absl::StrCat(device.resident_bytes)},
         {"upload_bytes", absl::StrCat(device.upload_bytes)},
         {"replica_bytes", absl::StrCat(device.replica_bytes)}});
    metrics.SetDeviceInfo(device.ordinal, device.name, device.compute_capability);
  }
}

absl::Status OpenDevices(const ServerOptions& options, DeviceFailure& failure, Metrics& metrics, Core& core) {
  ASSIGN_OR_RETURN(core.backend, MakeBackend(options, metrics, [&failure](const absl::Status& status) {
                     failure.Report("GPU context lost", std::string(status.message()));
                   }));
  // The cpu backend measures its rates in the first Compile. Do it now, while nothing else runs.
  static_cast<void>(core.backend->Compile(Program(), MemoryPlan()));
  ShowDevices(*core.backend, metrics);
  if (!core.is_cuda()) return absl::OkStatus();
  core.watchdog = std::make_unique<DeviceWatchdog>(
      static_cast<int>(core.backend->devices().size()),
      DeviceWatchdog::Options{.base = options.device_timeout},
      [&failure](const DeviceWatchdog::Stall& stall) { failure.Report("device hangs", ToString(stall)); });
  return absl::OkStatus();
}

absl::Status MakeStaging(const ServerOptions& options, Metrics& metrics, Core& core) {
  const std::int64_t pinned_bytes = options.PinnedBytes(core.is_cuda());
  const std::int64_t tiny_bytes = options.TinyPinnedBytes(core.is_cuda());
  ASSIGN_OR_RETURN(core.staging_memory,
                   core.backend->AllocateHost(static_cast<std::size_t>(tiny_bytes + pinned_bytes)));
  core.pool.emplace(core.staging_memory.bytes(), static_cast<std::size_t>(tiny_bytes), metrics);
  return absl::OkStatus();
}

void MakeStores(const ServerOptions& options, const Machine& machine, const Access& access, Metrics& metrics,
                Core& core) {
  // A quarter, so that the rest is left for requests, even if there are many slow transfers.
  core.transfers.emplace(
      FairBudget::Options{.total = options.MaxJobBytes() / 4, .what = "bytes for transfers"});
  core.replicas.emplace(
      OfEachDevice(*core.backend, &DeviceInfo::replica_bytes),
      [backend = core.backend.get()](int device, std::size_t bytes) {
        return backend->AllocateResident(device, bytes);
      },
      metrics);
  const auto allocate = [replicas = &*core.replicas](int device, std::size_t bytes) {
    return replicas->Allocate(device, bytes);
  };
  core.streamed.emplace(
      StreamedCalls::Options{.device_bytes = OfEachDevice(*core.backend, &DeviceInfo::upload_bytes),
                             .chunk_bytes = ChunkWindow::kChunkBytes},
      allocate, *core.transfers, *core.admission, metrics);
  core.tensors.emplace(
      TensorStore::Options{.max_ttl = options.max_ttl,
                           .device_bytes = OfEachDevice(*core.backend, &DeviceInfo::resident_bytes),
                           .limits_of = access.limits_of,
                           .owner_metrics = access.owner_metrics.get(),
                           .replicas = &*core.replicas},
      allocate, metrics);
  core.region_bytes = options.RegionBytes(static_cast<std::int64_t>(AvailableMemoryBytes()));
  core.regions.emplace(RegionStore::Options{.max_bytes = static_cast<std::size_t>(core.region_bytes),
                                            .max_regions = machine.MaxRegions(),
                                            .max_regions_per_owner = kMaxRegionsPerOwner,
                                            .limits_of = access.limits_of,
                                            .owner_metrics = access.owner_metrics.get()},
                       metrics);
}

}  // namespace

std::size_t Machine::MaxRegions() const {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(descriptors / 16, 16, 4096));
}

absl::StatusOr<std::unique_ptr<Core>> Core::Create(const ServerOptions& options, const Machine& machine,
                                                   const Access& access, DeviceFailure& failure,
                                                   Metrics& metrics) {
  auto core = std::make_unique<Core>();
  RETURN_IF_ERROR(OpenDevices(options, failure, metrics, *core));
  RETURN_IF_ERROR(MakeStaging(options, metrics, *core));
  core->admission.emplace(Admission::Options{.max_jobs = options.max_jobs,
                                             .max_bytes = options.MaxJobBytes(),
                                             .limits_of = access.limits_of,
                                             .owner_metrics = access.owner_metrics.get()},
                          metrics);
  MakeStores(options, machine, access, metrics, *core);
  core->workers.emplace(options.Workers(machine.cpus));
  const bool cuda = core->is_cuda();
  ASSIGN_OR_RETURN(core->scheduler,
                   Scheduler::Create({.lanes_per_device = options.Lanes(cuda),
                                      .lanes_kept = options.LanesKept(cuda),
                                      .always_urgent = options.kept_multiprocessors > 0,
                                      .short_seconds = options.ShortSeconds(cuda),
                                      .short_bytes = options.ShortBytes(cuda),
                                      .running_seconds_max = options.RunningSecondsMax(cuda),
                                      .spin = cuda ? options.Look(machine.cpus) : absl::ZeroDuration(),
                                      .limits_of = access.limits_of,
                                      .owner_metrics = access.owner_metrics.get(),
                                      .watchdog = core->watchdog.get()},
                                     *core->backend, *core->pool, *core->workers, metrics));
  return core;
}

}  // namespace warpline
