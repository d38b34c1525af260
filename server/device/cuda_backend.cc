#include "server/device/cuda_backend.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/gpu/device_count.h"
#include "kernels/gpu/empty_kernel.h"
#include "kernels/gpu/pinned_memory.h"
#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"
#include "server/device/cuda_device.h"
#include "server/device/cuda_lane.h"
#include "server/device/cuda_plan.h"
#include "server/device/cuda_rates.h"
#include "server/device/device_budget.h"
#include "server/device/named_devices.h"
#include "server/device/open_devices.h"
#include "server/device/peer_rate.h"
#include "server/device/select_variant.h"
#include "server/observe/log.h"
#include "server/plan/cost.h"

namespace warpline {
namespace {

using gpu::ToStatus;

// Returns the compute capability for which the code that runs on the device was compiled. UNAVAILABLE if this
// build has no code for the device.
absl::StatusOr<int> ProbeKernels(const cudaDeviceProp& properties) {
  int capability = 0;
  const cudaError_t error = gpu::FindKernelImage(&capability);
  if (error == cudaSuccess) return capability;
  cudaGetLastError();
  return absl::UnavailableError(
      absl::StrCat(properties.name, " has compute capability ", properties.major, ".", properties.minor,
                   ", for which this build has no kernels: ", cudaGetErrorName(error)));
}

// The smallest useful pool: enough for products of some ten MiB, with cuBLASLt's workspace.
constexpr std::size_t kMinPoolBytes = std::size_t{64} << 20;
// How much a context grows while the daemon runs, not counting graphs: modules, and local memory of kernels.
constexpr std::size_t kContextBytes = std::size_t{128} << 20;

// Asks how much memory is free on the current device, and returns the input for DecideDeviceBytes.
absl::StatusOr<DeviceMemoryQuestion> AskForMemory(const CudaBackendOptions& options) {
  const auto lanes = static_cast<std::size_t>(options.lanes);
  const std::size_t lanes_bytes = lanes * options.lane_bytes;
  DeviceMemoryQuestion question{.wanted = options.device_bytes,
                                .exact = options.exact_device_bytes,
                                .least = lanes_bytes + kMinPoolBytes,
                                .margin = kContextBytes + lanes * options.graph_cache_bytes};
  std::size_t total = 0;
  RETURN_IF_ERROR(ToStatus(cudaMemGetInfo(&question.free, &total), "asking for free memory"));
  return question;
}

// Opens the pool of the current device. It gets what is left of the device's bytes after the lanes' memory.
absl::StatusOr<std::unique_ptr<DevicePool>> OpenPool(int ordinal, const CudaBackendOptions& options,
                                                     Metrics& metrics) {
  ASSIGN_OR_RETURN(const DeviceMemoryQuestion question, AskForMemory(options));
  ASSIGN_OR_RETURN(const std::size_t bytes, DecideDeviceBytes(question));
  const bool less = bytes < question.wanted;
  Log(less ? "warning" : "info",
      less ? "device memory: less than wanted; large requests wait for it, and the largest may be refused"
           : "device memory",
      {{"device", absl::StrCat(ordinal)},
       {"wanted", absl::StrCat(question.wanted)},
       {"taken", absl::StrCat(bytes)},
       {"free", absl::StrCat(question.free)}});
  const std::size_t lanes_bytes = static_cast<std::size_t>(options.lanes) * options.lane_bytes;
  return DevicePool::Create(
      {.ordinal = ordinal, .bytes = (bytes - lanes_bytes) / DevicePool::kUnit * DevicePool::kUnit}, metrics);
}

// Opens the memory for resident tensors, uploads and streamed results of the current device, and for replicas
// if the node has others. The device's pool already has its memory, and the memory of the lanes, which are
// made later, stays free. Writes the sizes to `info`.
absl::StatusOr<std::unique_ptr<DevicePool>> OpenResident(const CudaBackendOptions& options, bool has_others,
                                                         DeviceInfo& info, Metrics& metrics) {
  ASSIGN_OR_RETURN(const DeviceMemoryQuestion question, AskForMemory(options));
  const std::size_t others = question.margin + static_cast<std::size_t>(options.lanes) * options.lane_bytes;
  const std::size_t left = question.free - std::min(question.free, others);
  const auto whole = [](std::size_t bytes) { return bytes / DevicePool::kUnit * DevicePool::kUnit; };
  info.resident_bytes = whole(options.resident_bytes.value_or(left / 2));
  const std::size_t others_left = left - std::min(left, info.resident_bytes);
  info.upload_bytes = whole(options.upload_bytes.value_or(std::min(left / 4, others_left)));
  if (info.resident_bytes > left || info.upload_bytes > others_left) {
    return absl::ResourceExhaustedError(
        absl::StrCat("--resident-bytes=", info.resident_bytes, " and --upload-bytes=", info.upload_bytes,
                     ": of the device's memory ", left, " bytes are left for both"));
  }
  const std::size_t tensor_bytes = info.resident_bytes + info.upload_bytes;
  if (tensor_bytes == 0) return nullptr;
  // A quarter, but nothing that tensors and uploads may claim.
  if (has_others) info.replica_bytes = whole(std::min(left / 4, left - tensor_bytes));
  return DevicePool::Create({.ordinal = info.ordinal,
                             .bytes = tensor_bytes + info.replica_bytes,
                             .grown = false,
                             .used_state = "resident_used",
                             .free_state = "resident_free"},
                            metrics);
}

// Returns the device's UUID as nvidia-smi prints it.
absl::StatusOr<std::string> UuidOf(int cuda_ordinal) {
  cudaDeviceProp properties;
  RETURN_IF_ERROR(ToStatus(cudaGetDeviceProperties(&properties, cuda_ordinal), "reading device properties"));
  const std::string_view bytes(properties.uuid.bytes, sizeof(properties.uuid.bytes));
  const std::string digits = absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
  return absl::StrCat("GPU-", digits.substr(0, 8), "-", digits.substr(8, 4), "-", digits.substr(12, 4), "-",
                      digits.substr(16, 4), "-", digits.substr(20));
}

// Leaves `count` of `all` multiprocessors to short jobs.
absl::Status KeepMultiprocessors(int count, int all, CudaDevice& device) {
  auto partition = gpu::Partition::LeavingOut(count);
  if (!partition.ok()) {
    return absl::Status(partition.status().code(),
                        absl::StrCat("--kept-multiprocessors=", count, ": ", partition.status().message()));
  }
  device.partition.emplace(*std::move(partition));
  device.context.traits.multiprocessors = device.partition->multiprocessors();
  if (device.cublaslt != nullptr) device.cublaslt->ConfineTo(device.partition->multiprocessors());
  Log("info", "multiprocessors kept for short jobs",
      {{"device", absl::StrCat(device.info.ordinal)},
       {"kept", absl::StrCat(all - device.partition->multiprocessors())},
       {"of", absl::StrCat(all)}});
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CudaDevice>> OpenDevice(int ordinal, int cuda_ordinal, bool has_others,
                                                       const CudaBackendOptions& options, Metrics& metrics) {
  cudaDeviceProp properties;
  RETURN_IF_ERROR(ToStatus(cudaSetDevice(cuda_ordinal), absl::StrCat("choosing device ", cuda_ordinal)));
  RETURN_IF_ERROR(ToStatus(cudaGetDeviceProperties(&properties, cuda_ordinal), "reading device properties"));
  auto device = std::make_unique<CudaDevice>();
  device->cuda_ordinal = cuda_ordinal;
  device->info = {.ordinal = ordinal,
                  .name = properties.name,
                  .compute_capability = absl::StrCat(properties.major, ".", properties.minor),
                  .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem)};
  device->uses_host_pointers = properties.canUseHostPointerForRegisteredMem != 0;
  ASSIGN_OR_RETURN(const int code_capability, ProbeKernels(properties));
  // Checked first, so that a device with too little memory gives this error and not a later one. The size is
  // decided below, after everything else that comes before the pool has its memory.
  ASSIGN_OR_RETURN(const DeviceMemoryQuestion question, AskForMemory(options));
  RETURN_IF_ERROR(DecideDeviceBytes(question).status());
  std::string why_not;
  device->cublaslt = CublasLt::Load(&why_not);
  if (device->cublaslt == nullptr) {
    Log("warning", "cuBLASLt not found: gemm runs on our own, slower kernels", {{"reason", why_not}});
  }
  device->context.cublaslt = device->cublaslt.get();
  device->context.traits = {.compute_capability = properties.major * 10 + properties.minor,
                            .multiprocessors = properties.multiProcessorCount,
                            .has_cublaslt = device->cublaslt != nullptr,
                            .code_capability = code_capability};
  if (options.measure_roofline) {
    ASSIGN_OR_RETURN(device->roofline, MeasureRoofline(device->context));
  }
  if (options.timing_sample > 0 && device->uses_host_pointers) {
    ASSIGN_OR_RETURN(device->event_overhead, MeasureEventOverhead(device->context.traits));
    Log("info", "timing adds to each kernel, which is taken off",
        {{"device", absl::StrCat(ordinal)}, {"us", absl::StrCat(device->event_overhead * 1e6)}});
  }
  if (options.kept_multiprocessors > 0) {
    RETURN_IF_ERROR(
        KeepMultiprocessors(options.kept_multiprocessors, properties.multiProcessorCount, *device));
  }
  ASSIGN_OR_RETURN(device->default_scalars, gpu::AllocateDevice(sizeof(StepScalars)));
  constexpr StepScalars kDefaults;
  RETURN_IF_ERROR(ToStatus(
      cudaMemcpy(device->default_scalars.get(), &kDefaults, sizeof(kDefaults), cudaMemcpyHostToDevice),
      "writing the default scalars"));
  ASSIGN_OR_RETURN(device->cuts, CutPipeline::Create());
  ASSIGN_OR_RETURN(device->epoch, gpu::CreateTimedEvent());
  RETURN_IF_ERROR(ToStatus(cudaEventRecord(device->epoch.get()), "recording an event"));
  RETURN_IF_ERROR(ToStatus(cudaEventSynchronize(device->epoch.get()), "recording an event"));
  ASSIGN_OR_RETURN(device->pool, OpenPool(ordinal, options, metrics));
  device->info.pool_bytes = device->pool->bytes();
  ASSIGN_OR_RETURN(device->resident, OpenResident(options, has_others, device->info, metrics));
  ASSIGN_OR_RETURN(Transfers transfers, Transfers::Create());
  device->transfers.emplace(std::move(transfers));
  device->completion =
      std::make_unique<Completion>(cuda_ordinal, [tell = options.context_lost](const absl::Status& status) {
        if (tell) tell(status);
      });
  return device;
}

// Lets devices access each other's memory where the hardware can. Otherwise copies between them go through
// the host.
absl::Status JoinDevices(std::span<const std::unique_ptr<CudaDevice>> devices) {
  std::vector<int> cuda_ordinals;
  for (const auto& device : devices) cuda_ordinals.push_back(device->cuda_ordinal);
  for (const auto& device : devices) {
    device->cuda_ordinals = cuda_ordinals;
    RETURN_IF_ERROR(ToStatus(cudaSetDevice(device->cuda_ordinal), "choosing a device"));
    for (const int other : cuda_ordinals) {
      if (other == device->cuda_ordinal) continue;
      absl::Status opened = device->pool->LetReach(other);
      if (opened.ok() && device->resident != nullptr) opened = device->resident->LetReach(other);
      if (opened.ok()) continue;
      cudaGetLastError();  // clears the error, which the next call would return otherwise
      Log("warning", "copies between devices are slow", {{"reason", std::string(opened.message())}});
    }
  }
  for (const auto& to : devices) {
    for (const auto& from : devices) {
      if (from == to) continue;
      const double rate = MeasurePeerRate(*from, *to);
      double& slowest = to->info.peer_bytes_per_second;
      if (slowest == 0 || rate < slowest) slowest = rate;
    }
    if (to->info.peer_bytes_per_second == 0) continue;
    Log("info", "copies from other devices",
        {{"device", absl::StrCat(to->info.ordinal)},
         {"gigabytes_per_second", absl::StrCat(to->info.peer_bytes_per_second * 1e-9)}});
  }
  return absl::OkStatus();
}

class CudaBackend : public Backend {
 public:
  CudaBackend(std::vector<std::unique_ptr<CudaDevice>> devices, const CudaBackendOptions& options,
              std::unique_ptr<Metrics> own_metrics, Metrics& metrics)
      : own_metrics_(std::move(own_metrics)),
        metrics_(metrics),
        options_(options),
        devices_(std::move(devices)) {
    for (const auto& device : devices_) {
      infos_.push_back(device->info);
      rates_.push_back(CudaRates(device->roofline, device->context.traits));
      const CudaKind kind{device->context.traits, device->uses_host_pointers};
      const auto known = std::find(kinds_.begin(), kinds_.end(), kind);
      device->kind = static_cast<std::size_t>(known - kinds_.begin());
      if (known == kinds_.end()) kinds_.push_back(kind);
    }
  }

  std::string_view name() const override { return "cuda"; }
  std::span<const DeviceInfo> devices() const override { return infos_; }

  std::vector<VariantInfo> Variants() const override {
    std::vector<DeviceTraits> traits;
    for (const auto& device : devices_) traits.push_back(device->context.traits);
    std::vector<VariantInfo> all;
    AppendVariantInfo(Op::kTranspose, CudaTransposeVariants(), traits, all);
    AppendVariantInfo(Op::kGemm, CudaGemmVariants(), traits, all);
    AppendVariantInfo(Op::kReduce, CudaReduceVariants(), traits, all);
    AppendVariantInfo(Op::kMap, CudaMapVariants(), traits, all);
    AppendVariantInfo(Op::kTake, CudaTakeVariants(), traits, all);
    AppendVariantInfo(Op::kPut, CudaPutVariants(), traits, all);
    AppendVariantInfo(Op::kScan, CudaScanVariants(), traits, all);
    AppendVariantInfo(Op::kSort, CudaSortVariants(), traits, all);
    AppendVariantInfo(Op::kSearch, CudaSearchVariants(), traits, all);
    AppendVariantInfo(Op::kCompress, CudaCompressVariants(), traits, all);
    return all;
  }

  // Assumes that all devices of a node are alike: only the first is asked.
  absl::Status CheckVariant(const Problem& problem, std::string_view variant) const override {
    return std::visit([&](const auto& p) { return CheckVariantIn(CudaTable(p), p, variant, traits()); },
                      problem);
  }

  absl::StatusOr<CompiledProgram> Compile(const Program& program, const MemoryPlan& plan) const override {
    const std::shared_ptr<const CudaProgram> compiled = CompileForCuda(
        program, plan, kinds_, devices_.size(),
        {.lane_bytes = options_.lane_bytes, .paths = options_.paths, .cutting = options_.cutting});
    std::size_t limit = 0;
    for (const DeviceInfo& device : infos_) limit = std::max(limit, device.pool_bytes);
    if (compiled->device_bytes > limit) {
      return absl::InvalidArgumentError(
          absl::StrCat("the request needs ", compiled->device_bytes,
                       " bytes of scratch memory for its tensors and its steps; limit ", limit,
                       " (the server's --device-bytes)"));
    }
    CompiledProgram result{
        .program = compiled, .device_bytes = compiled->device_bytes, .max_parts = MaxParts(*compiled)};
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const std::vector<StepChoice>& choices = compiled->plans[devices_[i]->kind].steps;
      const auto cost_of = [&](const Step& step, std::size_t index) {
        return CostOf(step.problem, choices[index], devices_[i]->context.traits);
      };
      result.seconds = std::max(result.seconds, ProgramSeconds(program, rates_[i], cost_of));
    }
    return result;
  }

  bool launches_asynchronously() const override { return true; }

  absl::StatusOr<std::unique_ptr<Lane>> CreateLane(int device) override {
    return CudaLane::Create(*devices_[device], options_, metrics_);
  }

  absl::StatusOr<Buffer> AllocateHost(std::size_t bytes) override {
    ASSIGN_OR_RETURN(gpu::PinnedMemory memory, gpu::PinnedMemory::Allocate(bytes));
    metrics_.Allocations("pinned").Add();
    auto owner = std::make_shared<gpu::PinnedMemory>(std::move(memory));
    return Buffer(owner->bytes(), {.kind = Place::Kind::kPinned}, owner);
  }

  absl::StatusOr<std::shared_ptr<void>> RegisterHost(std::span<std::byte> bytes) override {
    // Any device's context will do: the memory is portable.
    CudaDevice& device = *devices_.front();
    RETURN_IF_ERROR(ToStatus(cudaSetDevice(device.cuda_ordinal), "choosing a device"));
    absl::StatusOr<std::shared_ptr<void>> registered = gpu::RegisterHostMemory(bytes);
    if (!registered.ok()) device.completion->ReportError(registered.status());
    return registered;
  }

  absl::StatusOr<Buffer> AllocateResident(int ordinal, std::size_t bytes) override {
    CudaDevice& device = *devices_[static_cast<std::size_t>(ordinal)];
    if (device.resident == nullptr)
      return absl::ResourceExhaustedError("there is no memory for resident tensors");
    RETURN_IF_ERROR(ToStatus(cudaSetDevice(device.cuda_ordinal), "choosing a device"));
    absl::StatusOr<Buffer> memory = device.resident->Take(bytes);
    if (!memory.ok()) device.completion->ReportError(memory.status());
    return memory;
  }

  bool HasResidentAtHand(int ordinal, std::size_t bytes) const override {
    const CudaDevice& device = *devices_[static_cast<std::size_t>(ordinal)];
    return device.resident != nullptr && device.resident->HasAtHand(bytes);
  }

  void Start(const Transfer& transfer, absl::AnyInvocable<void(absl::Status)> done) override {
    CudaDevice& device = *devices_[static_cast<std::size_t>(transfer.device)];
    absl::Status chosen = ToStatus(cudaSetDevice(device.cuda_ordinal), "choosing a device");
    if (!chosen.ok()) return done(std::move(chosen));
    device.transfers->Start(transfer, *device.completion, std::move(done));
  }

 private:
  const DeviceTraits& traits() const { return devices_.front()->context.traits; }

  int MaxParts(const CudaProgram& program) const {
    auto parts = static_cast<int>(devices_.size());
    for (const CudaPlan& plan : program.plans) {
      parts = std::min(parts, plan.alone == Path::kBlocks ? plan.cutting->MaxParts() : 1);
    }
    return parts;
  }

  std::unique_ptr<Metrics> own_metrics_;
  Metrics& metrics_;
  const CudaBackendOptions options_;
  std::vector<std::unique_ptr<CudaDevice>> devices_;
  std::vector<DeviceInfo> infos_;
  std::vector<DeviceRates> rates_;  // one per device
  std::vector<CudaKind> kinds_;     // the different kinds of device
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(const CudaBackendOptions& options) {
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr) {
    RETURN_IF_ERROR(CheckVisibleDevices(visible));
  }
  ASSIGN_OR_RETURN(const int count, gpu::CountDevices());
  std::vector<int> ordinals(static_cast<std::size_t>(count));
  std::iota(ordinals.begin(), ordinals.end(), 0);
  if (!options.devices.empty()) {
    std::vector<std::string> uuids(ordinals.size());
    const bool by_uuid = std::any_of(options.devices.begin(), options.devices.end(), IsUuid);
    for (std::size_t i = 0; by_uuid && i < uuids.size(); ++i) {
      ASSIGN_OR_RETURN(uuids[i], UuidOf(ordinals[i]));
    }
    ASSIGN_OR_RETURN(ordinals, FindNamedDevices(options.devices, uuids));
  }
  // Tests need no metrics of their own.
  auto own_metrics = options.metrics == nullptr ? std::make_unique<Metrics>() : nullptr;
  Metrics& metrics = options.metrics != nullptr ? *options.metrics : *own_metrics;
  const auto open = [&](int cuda_ordinal, int ordinal) {
    return OpenDevice(ordinal, cuda_ordinal, ordinals.size() > 1, options, metrics);
  };
  const OnUnusable on_unusable = options.devices.empty() ? OnUnusable::kSkip : OnUnusable::kFail;
  ASSIGN_OR_RETURN(auto devices, OpenDevices<std::unique_ptr<CudaDevice>>(ordinals, on_unusable, open));
  RETURN_IF_ERROR(JoinDevices(devices));
  // The device that was tried last may have been skipped for lack of memory. Host memory is registered in the
  // context of the current device, so a device that is in use must be current.
  RETURN_IF_ERROR(ToStatus(cudaSetDevice(devices.front()->cuda_ordinal), "choosing a device"));
  return std::make_unique<CudaBackend>(std::move(devices), options, std::move(own_metrics), metrics);
}

}  // namespace warpline
