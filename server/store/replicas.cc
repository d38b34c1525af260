#include "server/store/replicas.h"

#include <algorithm>
#include <utility>

namespace warpline {

// The memory of a replica. It counts until its last user lets go.
struct Replicas::Making::Memory {
  Memory(Replicas& replicas, int device, Buffer buffer)
      : replicas(replicas), device(device), buffer(std::move(buffer)) {
    Show(1);
  }
  ~Memory() {
    const std::size_t bytes = buffer.bytes().size();
    Show(-1);
    buffer = Buffer();
    MutexLock lock(&replicas.mutex_);
    replicas.devices_[static_cast<std::size_t>(device)].used_bytes -= bytes;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // The backend counts the memory as that of tensors.
  void Show(int sign) {
    const double bytes = sign * static_cast<double>(buffer.bytes().size());
    replicas.metrics_.DeviceMemoryBytes(device, "replicas").Add(bytes);
    replicas.metrics_.DeviceMemoryBytes(device, "resident_used").Add(-bytes);
  }

  Replicas& replicas;
  const int device;
  Buffer buffer;
};

Replicas::Making::Making(Replicas& replicas, Buffer home, int device, std::shared_ptr<Memory> memory)
    : replicas_(&replicas), home_(std::move(home)), device_(device), memory_(std::move(memory)) {}

Replicas::Making::Making(Making&& other) noexcept
    : replicas_(std::exchange(other.replicas_, nullptr)),
      home_(std::move(other.home_)),
      device_(other.device_),
      memory_(std::move(other.memory_)) {}

Replicas::Making::~Making() {
  if (replicas_ == nullptr) return;
  MutexLock lock(&replicas_->mutex_);
  replicas_->Remove(home_.bytes().data(), device_);  // it has no memory yet
}

Buffer Replicas::Making::memory() const { return WithHome(home_, device_, memory_); }

void Replicas::Making::Complete() {
  Replicas* const replicas = std::exchange(replicas_, nullptr);
  MutexLock lock(&replicas->mutex_);
  const std::byte* const home = home_.bytes().data();
  Replica& replica = *replicas->FindReplica(home, device_);
  Order& order = replicas->devices_[static_cast<std::size_t>(device_)].order;
  replica.place = order.insert(order.end(), home);
  replica.memory = memory_;
}

Replicas::Replicas(const std::vector<std::size_t>& device_bytes, AllocateMemory allocate, Metrics& metrics)
    : allocate_(std::move(allocate)),
      has_several_devices_(device_bytes.size() > 1),
      metrics_(metrics),
      devices_(device_bytes.size()) {
  for (std::size_t i = 0; i < devices_.size(); ++i) devices_[i].bytes = device_bytes[i];
}

Buffer Replicas::WithHome(const Buffer& home, int device, std::shared_ptr<Memory> memory) {
  const std::span<std::byte> bytes = memory->buffer.bytes();
  using Both = std::pair<Buffer, std::shared_ptr<Memory>>;
  return Buffer(bytes, {.kind = Place::Kind::kDevice, .device = device},
                std::make_shared<Both>(home, std::move(memory)));
}

Replicas::Replica* Replicas::FindReplica(const std::byte* home, int device) {
  const auto tensor = tensors_.find(home);
  if (tensor == tensors_.end()) return nullptr;
  auto& replicas = tensor->second.replicas;
  const auto found = std::find_if(replicas.begin(), replicas.end(),
                                  [&](const Replica& replica) { return replica.device == device; });
  return found == replicas.end() ? nullptr : &*found;
}

std::shared_ptr<Replicas::Memory> Replicas::Remove(const std::byte* home, int device) {
  Replica* const replica = FindReplica(home, device);
  std::shared_ptr<Memory> memory = std::move(replica->memory);
  if (memory != nullptr) devices_[static_cast<std::size_t>(device)].order.erase(replica->place);
  const auto tensor = tensors_.find(home);
  auto& replicas = tensor->second.replicas;
  replicas.erase(replicas.begin() + (replica - replicas.data()));
  if (replicas.empty()) tensors_.erase(tensor);
  return memory;
}

void Replicas::Forget(const std::byte* home) {
  std::vector<std::shared_ptr<Memory>> gone;  // freed after the lock is released
  MutexLock lock(&mutex_);
  const auto tensor = tensors_.find(home);
  if (tensor == tensors_.end()) return;
  for (Replica& replica : tensor->second.replicas) {
    devices_[static_cast<std::size_t>(replica.device)].order.erase(replica.place);
    gone.push_back(std::move(replica.memory));
  }
  tensors_.erase(tensor);
}

bool Replicas::GiveUp(int device, std::size_t bytes, bool enough) {
  std::vector<std::shared_ptr<Memory>> gone;  // freed after the lock is released
  MutexLock lock(&mutex_);
  std::vector<const std::byte*> homes;
  std::size_t found = 0;
  for (const std::byte* const home : devices_[static_cast<std::size_t>(device)].order) {
    if (found >= bytes) break;
    const std::shared_ptr<Memory>& memory = FindReplica(home, device)->memory;
    if (memory.use_count() > 1) continue;  // a job uses it
    homes.push_back(home);
    found += memory->buffer.bytes().size();
  }
  if (enough && found < bytes) return false;
  for (const std::byte* const home : homes) gone.push_back(Remove(home, device));
  return !gone.empty();
}

absl::StatusOr<Buffer> Replicas::Allocate(int device, std::size_t bytes) {
  absl::StatusOr<Buffer> memory = allocate_(device, bytes);
  while (absl::IsResourceExhausted(memory.status()) && GiveUp(device, bytes, /*enough=*/false)) {
    memory = allocate_(device, bytes);
  }
  if (!memory.ok() || bytes == 0 || !has_several_devices_) return memory;
  const std::span<std::byte> all = memory->bytes();
  const Place place = memory->place();
  // The address is free for others only when the buffer is gone.
  const auto forget = [this, buffer = *std::move(memory)](std::byte* home) { Forget(home); };
  return Buffer(all, place, std::shared_ptr<std::byte>(all.data(), forget));
}

Replicas::Devices Replicas::DevicesOf(const Buffer& home) const {
  Devices devices;
  MutexLock lock(&mutex_);
  const auto tensor = tensors_.find(home.bytes().data());
  if (tensor == tensors_.end()) return devices;
  for (const Replica& replica : tensor->second.replicas) {
    if (replica.memory != nullptr) devices.push_back(replica.device);
  }
  return devices;
}

Buffer Replicas::Find(const Buffer& home, int device) {
  std::shared_ptr<Memory> memory;
  {
    MutexLock lock(&mutex_);
    Replica* const replica = FindReplica(home.bytes().data(), device);
    if (replica == nullptr || replica->memory == nullptr) return Buffer();
    Order& order = devices_[static_cast<std::size_t>(device)].order;
    order.splice(order.end(), order, replica->place);
    memory = replica->memory;
  }
  return WithHome(home, device, std::move(memory));
}

std::size_t Replicas::Reserve(int device, std::size_t bytes) {
  MutexLock lock(&mutex_);
  Device& of = devices_[static_cast<std::size_t>(device)];
  if (of.used_bytes + bytes > of.bytes) return of.used_bytes + bytes - of.bytes;
  of.used_bytes += bytes;
  return 0;
}

bool Replicas::CouldMake(const Buffer& home, int device) const {
  if (home.bytes().size() > devices_[static_cast<std::size_t>(device)].bytes) return false;
  const auto tensor = tensors_.find(home.bytes().data());
  return tensor == tensors_.end() ||
         std::none_of(tensor->second.replicas.begin(), tensor->second.replicas.end(),
                      [&](const Replica& replica) { return replica.device == device; });
}

bool Replicas::MayMake(const Buffer& home, int device) const {
  MutexLock lock(&mutex_);
  return CouldMake(home, device);
}

std::optional<Replicas::Making> Replicas::Make(const Buffer& home, int device) {
  const std::size_t bytes = home.bytes().size();
  {
    MutexLock lock(&mutex_);
    if (!CouldMake(home, device)) return std::nullopt;
    tensors_[home.bytes().data()].replicas.push_back({.device = device, .memory = nullptr, .place = {}});
  }
  Making making(*this, home, device, nullptr);
  while (const std::size_t lacking = Reserve(device, bytes)) {
    if (!GiveUp(device, lacking, /*enough=*/true)) return std::nullopt;
  }
  absl::StatusOr<Buffer> memory = allocate_(device, bytes);
  if (absl::IsResourceExhausted(memory.status()) && GiveUp(device, bytes, /*enough=*/true)) {
    memory = allocate_(device, bytes);
  }
  if (!memory.ok()) {
    MutexLock lock(&mutex_);
    devices_[static_cast<std::size_t>(device)].used_bytes -= bytes;
    return std::nullopt;
  }
  making.memory_ = std::make_shared<Memory>(*this, device, *std::move(memory));
  return making;
}

bool Replicas::ShouldLeave(const Buffer& home, bool better) {
  MutexLock lock(&mutex_);
  if (better) return std::exchange(tensors_[home.bytes().data()].should_leave, true);
  const auto tensor = tensors_.find(home.bytes().data());
  if (tensor != tensors_.end()) tensor->second.should_leave = false;
  return false;
}

}  // namespace warpline
