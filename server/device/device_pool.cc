#include "server/device/device_pool.h"

#include <cstdint>
#include <limits>

#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"

namespace warpline {

using gpu::ToStatus;

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
      free_(metrics.DeviceMemoryBytes(options.ordinal, options.free_state)) {}

DevicePool::~DevicePool() {
  if (stream_ == nullptr) return;
  cudaStreamSynchronize(stream_.get());
  free_.Set(0);
}

absl::Status DevicePool::KeepAll() {
  std::uint64_t keep_all = std::numeric_limits<std::uint64_t>::max();
  return ToStatus(cudaMemPoolSetAttribute(pool_.get(), cudaMemPoolAttrReleaseThreshold, &keep_all),
                  "setting up a pool of device memory");
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
  void* block = nullptr;
  RETURN_IF_ERROR(ToStatus(cudaMallocFromPoolAsync(&block, bytes, pool_.get(), stream_.get()),
                           "taking a block of the device's pool"));
  used_.Add(static_cast<double>(bytes));
  free_.Add(-static_cast<double>(bytes));
  const std::shared_ptr<void> owner(block, [this, bytes](void* taken) { GiveBack(taken, bytes); });
  RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(stream_.get()), "taking a block of the device's pool"));
  return Buffer({static_cast<std::byte*>(block), bytes}, place, owner);
}

bool DevicePool::HasAtHand(std::size_t bytes) const {
  std::uint64_t reserved = 0, used = 0;
  if (cudaMemPoolGetAttribute(pool_.get(), cudaMemPoolAttrReservedMemCurrent, &reserved) != cudaSuccess ||
      cudaMemPoolGetAttribute(pool_.get(), cudaMemPoolAttrUsedMemCurrent, &used) != cudaSuccess) {
    return false;
  }
  // The two were asked for one after the other.
  return used <= reserved && reserved - used >= bytes;
}

void DevicePool::GiveBack(void* block, std::size_t bytes) {
  // This may be any thread, which would otherwise make a context on the first device of the node.
  cudaSetDevice(cuda_ordinal_);
  cudaFreeAsync(block, stream_.get());  // an error means that the context is lost, and the block with it
  used_.Add(-static_cast<double>(bytes));
  free_.Add(static_cast<double>(bytes));
}

}  // namespace warpline
