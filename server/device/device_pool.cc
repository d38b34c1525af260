#include "server/device/device_pool.h"

#include <cstdint>
#include <limits>

#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"

namespace warpline {

using gpu::ToStatus;

absl::StatusOr<std::unique_ptr<DevicePool>> DevicePool::Create(int ordinal, std::size_t bytes,
                                                               Metrics& metrics) {
  std::unique_ptr<DevicePool> pool(new DevicePool(ordinal, bytes, metrics));
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = cudaMemHandleTypeNone;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.maxSize = bytes;
  RETURN_IF_ERROR(ToStatus(cudaGetDevice(&properties.location.id), "asking for the device"));
  cudaMemPool_t handle = nullptr;
  RETURN_IF_ERROR(ToStatus(cudaMemPoolCreate(&handle, &properties), "creating a pool of device memory"));
  pool->pool_.reset(handle);
  ASSIGN_OR_RETURN(pool->stream_, gpu::CreateStream());
  RETURN_IF_ERROR(pool->Grow());
  metrics.Allocations("device").Add();
  pool->free_.Add(static_cast<double>(bytes));
  return pool;
}

DevicePool::DevicePool(int ordinal, std::size_t bytes, Metrics& metrics)
    : ordinal_(ordinal),
      bytes_(bytes),
      used_(metrics.DeviceMemoryBytes(ordinal, "pool_used")),
      free_(metrics.DeviceMemoryBytes(ordinal, "pool_free")) {}

DevicePool::~DevicePool() {
  if (stream_ == nullptr) return;
  cudaStreamSynchronize(stream_.get());
  free_.Set(0);
}

absl::Status DevicePool::Grow() {
  std::uint64_t keep_all = std::numeric_limits<std::uint64_t>::max();
  RETURN_IF_ERROR(ToStatus(cudaMemPoolSetAttribute(pool_.get(), cudaMemPoolAttrReleaseThreshold, &keep_all),
                           "setting up a pool of device memory"));
  void* all = nullptr;
  RETURN_IF_ERROR(ToStatus(cudaMallocFromPoolAsync(&all, bytes_, pool_.get(), stream_.get()),
                           "taking the device's pool of memory"));
  RETURN_IF_ERROR(ToStatus(cudaFreeAsync(all, stream_.get()), "taking the device's pool of memory"));
  return ToStatus(cudaStreamSynchronize(stream_.get()), "taking the device's pool of memory");
}

absl::StatusOr<Buffer> DevicePool::Take(std::size_t bytes) {
  void* block = nullptr;
  RETURN_IF_ERROR(ToStatus(cudaMallocFromPoolAsync(&block, bytes, pool_.get(), stream_.get()),
                           "taking a block of the device's pool"));
  used_.Add(static_cast<double>(bytes));
  free_.Add(-static_cast<double>(bytes));
  const std::shared_ptr<void> owner(block, [this, bytes](void* taken) { GiveBack(taken, bytes); });
  RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(stream_.get()), "taking a block of the device's pool"));
  return Buffer({static_cast<std::byte*>(block), bytes}, {.kind = Place::Kind::kDevice, .device = ordinal_},
                owner);
}

void DevicePool::GiveBack(void* block, std::size_t bytes) {
  cudaFreeAsync(block, stream_.get());  // an error means that the context is lost, and the block with it
  used_.Add(-static_cast<double>(bytes));
  free_.Add(static_cast<double>(bytes));
}

}  // namespace warpline
