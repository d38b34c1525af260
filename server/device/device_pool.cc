#include "server/device/device_pool.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
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
  FreeSpares();
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
  void* block = TakeSpare(bytes);
  if (block == nullptr) {
    absl::StatusOr<void*> taken = TakeFromRuntime(bytes);
    if (absl::IsResourceExhausted(taken.status())) {
      FreeSpares();
      taken = TakeFromRuntime(bytes);
    }
    RETURN_IF_ERROR(taken.status());
    block = *taken;
  }
  used_.Add(static_cast<double>(bytes));
  free_.Add(-static_cast<double>(bytes));
  const std::shared_ptr<void> owner(block, [this, bytes](void* taken) { GiveBack(taken, bytes); });
  return Buffer({static_cast<std::byte*>(block), bytes}, place, owner);
}

absl::StatusOr<void*> DevicePool::TakeFromRuntime(std::size_t bytes) {
  void* block = nullptr;
  RETURN_IF_ERROR(ToStatus(cudaMallocFromPoolAsync(&block, bytes, pool_.get(), stream_.get()),
                           "taking a block of the device's pool"));
  RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(stream_.get()), "taking a block of the device's pool"));
  return block;
}

void* DevicePool::TakeSpare(std::size_t bytes) {
  MutexLock lock(&mutex_);
  const auto found = std::find_if(spares_.rbegin(), spares_.rend(),
                                  [bytes](const Spare& spare) { return spare.bytes == bytes; });
  if (found == spares_.rend()) return nullptr;
  void* const block = found->block;
  spares_.erase(std::next(found).base());
  return block;
}

void DevicePool::FreeSpares() {
  MutexLock lock(&mutex_);
  for (const Spare& spare : spares_) cudaFreeAsync(spare.block, stream_.get());
  spares_.clear();
}

void DevicePool::GiveBack(void* block, std::size_t bytes) {
  // This may be any thread, which would otherwise make a context on the first device of the node.
  cudaSetDevice(cuda_ordinal_);
  {
    // More would keep memory in pieces that another size could use.
    constexpr std::size_t kMaxSpares = 8;
    MutexLock lock(&mutex_);
    spares_.push_back({block, bytes});
    if (spares_.size() > kMaxSpares) {
      // An error means that the context is lost, and the block with it.
      cudaFreeAsync(spares_.front().block, stream_.get());
      spares_.erase(spares_.begin());
    }
  }
  used_.Add(-static_cast<double>(bytes));
  free_.Add(static_cast<double>(bytes));
}

}  // namespace warpline
