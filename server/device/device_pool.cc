#include "server/device/device_pool.h"

#include <cstdint>
#include <limits>
#include <optional>

#include "kernels/align.h"
#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"

namespace warpline {

using gpu::ToStatus;

namespace {

// The runtime rounds the sizes of blocks up to this.
constexpr std::size_t kBlockUnit = 512;
// Few, because they are searched one after the other, and each is a hole between blocks of other sizes.
constexpr std::size_t kMaxKeptBlocks = 64;
constexpr std::size_t kKeptShare = 8;  // at most one eighth of the pool's bytes is kept

}  // namespace

absl::StatusOr<std::unique_ptr<DevicePool>> DevicePool::Create(const Options& options, Metrics& metrics) {
  std::unique_ptr<DevicePool> pool(new DevicePool(options, metrics));
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = cudaMemHandleTypeNone;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.maxSize = options.bytes;
  RETURN_IF_ERROR(ToStatus(cudaGetDevice(&properties.location.id), "asking for the device"));
  pool->cuda_ordinal_ = properties.location.id;
  cudaMemPool_t handle = nullptr;
  RETURN_IF_ERROR(ToStatus(cudaMemPoolCreate(&handle, &properties), "creating a pool of device memory"));
  pool->pool_.reset(handle);
  ASSIGN_OR_RETURN(pool->stream_, gpu::CreateStream());
  RETURN_IF_ERROR(pool->KeepAll());
  if (options.grown) {
    RETURN_IF_ERROR(pool->Grow());
    metrics.Allocations("device").Add();
  }
  pool->free_.Add(static_cast<double>(options.bytes));
  return pool;
}

DevicePool::DevicePool(const Options& options, Metrics& metrics)
    : ordinal_(options.ordinal),
      bytes_(options.bytes),
      used_(metrics.DeviceMemoryBytes(options.ordinal, options.used_state)),
      free_(metrics.DeviceMemoryBytes(options.ordinal, options.free_state)),
      kept_(kMaxKeptBlocks, options.bytes / kKeptShare) {}

DevicePool::~DevicePool() {
  if (stream_ == nullptr) return;
  Free(kept_.TakeAll());
  cudaStreamSynchronize(stream_.get());
  free_.Set(0);
}

absl::Status DevicePool::KeepAll() {
  std::uint64_t keep_all = std::numeric_limits<std::uint64_t>::max();
  return ToStatus(cudaMemPoolSetAttribute(pool_.get(), cudaMemPoolAttrReleaseThreshold, &keep_all),
                  "setting up a pool of device memory");
}

absl::Status DevicePool::LetReach(int cuda_ordinal) {
  int can = 0;
  RETURN_IF_ERROR(ToStatus(cudaDeviceCanAccessPeer(&can, cuda_ordinal, cuda_ordinal_), "looking for peers"));
  if (can == 0) return absl::OkStatus();
  cudaMemAccessDesc access = {};
  access.location = {.type = cudaMemLocationTypeDevice, .id = cuda_ordinal};
  access.flags = cudaMemAccessFlagsProtReadWrite;
  return ToStatus(cudaMemPoolSetAccess(pool_.get(), &access, 1), "opening a pool to another device");
}

absl::Status DevicePool::Grow() {
  void* all = nullptr;
  RETURN_IF_ERROR(ToStatus(cudaMallocFromPoolAsync(&all, bytes_, pool_.get(), stream_.get()),
                           "taking the device's pool of memory"));
  RETURN_IF_ERROR(ToStatus(cudaFreeAsync(all, stream_.get()), "taking the device's pool of memory"));
  return ToStatus(cudaStreamSynchronize(stream_.get()), "taking the device's pool of memory");
}

absl::StatusOr<Buffer> DevicePool::Take(std::size_t bytes) {
  const Place place{.kind = Place::Kind::kDevice, .device = ordinal_};
  if (bytes == 0) return Buffer({}, place, nullptr);
  const std::size_t rounded = AlignUp(bytes, kBlockUnit);
  std::optional<KeptBlocks::Block> block = kept_.Take(rounded);
  if (!block.has_value()) {
    ASSIGN_OR_RETURN(block, TakeNew(rounded));
  }
  used_.Add(static_cast<double>(bytes));
  free_.Add(-static_cast<double>(bytes));
  const std::shared_ptr<void> owner(block->address, [this, rounded, bytes](void* taken) {
    Free(kept_.Keep({taken, rounded}));
    used_.Add(-static_cast<double>(bytes));
    free_.Add(static_cast<double>(bytes));
  });
  return Buffer({static_cast<std::byte*>(block->address), bytes}, place, owner);
}

absl::StatusOr<KeptBlocks::Block> DevicePool::TakeNew(std::size_t bytes) {
  KeptBlocks::Block block{.bytes = bytes};
  const auto take = [&] {
    return cudaMallocFromPoolAsync(&block.address, bytes, pool_.get(), stream_.get());
  };
  cudaError_t taken = take();
  // Freeing the kept blocks may make enough room. The loop repeats because others may be returned and kept
  // meanwhile.
  while (taken == cudaErrorMemoryAllocation) {
    const std::vector<KeptBlocks::Block> kept = kept_.TakeAll();
    if (kept.empty()) break;
    cudaGetLastError();  // clears the error
    Free(kept);
    RETURN_IF_ERROR(
        ToStatus(cudaStreamSynchronize(stream_.get()), "waiting for blocks of the device's pool"));
    taken = take();
  }
  RETURN_IF_ERROR(ToStatus(taken, "taking a block of the device's pool"));
  const absl::Status ended =
      ToStatus(cudaStreamSynchronize(stream_.get()), "taking a block of the device's pool");
  if (!ended.ok()) Free({block});
  RETURN_IF_ERROR(ended);
  return block;
}

bool DevicePool::HasAtHand(std::size_t bytes) const {
  if (kept_.Has(AlignUp(bytes, kBlockUnit))) return true;
  std::uint64_t reserved = 0, used = 0;
  if (cudaMemPoolGetAttribute(pool_.get(), cudaMemPoolAttrReservedMemCurrent, &reserved) != cudaSuccess ||
      cudaMemPoolGetAttribute(pool_.get(), cudaMemPoolAttrUsedMemCurrent, &used) != cudaSuccess) {
    return false;
  }
  // The two values were read at different times, so `used` may be larger.
  return used <= reserved && reserved - used >= bytes;
}

void DevicePool::Free(const std::vector<KeptBlocks::Block>& blocks) {
  if (blocks.empty()) return;
  // Any thread may call this. Without this line CUDA could create a context on the first device of the node.
  cudaSetDevice(cuda_ordinal_);
  // An error means that the context is lost, and the blocks with it.
  for (const KeptBlocks::Block& block : blocks) cudaFreeAsync(block.address, stream_.get());
}

}  // namespace warpline
