#include "server/schedule/lanes.h"

#include <algorithm>
#include <utility>

#include "kernels/status_macros.h"

namespace warpline {

absl::StatusOr<std::unique_ptr<Lanes>> Lanes::Create(const Options& options, Backend& backend,
                                                     Metrics& metrics) {
  auto lanes = std::make_unique<Lanes>();
  lanes->kept_ = options.kept;
  for (int i = 0; i < static_cast<int>(backend.devices().size()); ++i) {
    Device& device = lanes->devices_.emplace_back();
    device.busy = metrics.LaneBusy(i);
    device.pool_bytes = device.free_bytes = backend.devices()[static_cast<std::size_t>(i)].pool_bytes;
    device.lanes = options.per_device;
    for (int k = 0; k < options.per_device; ++k) {
      ASSIGN_OR_RETURN(std::unique_ptr<Lane> lane, backend.CreateLane(i));
      lanes->lanes_.push_back(std::make_unique<LaneRunner>(i, std::move(lane), options.spin));
      device.free.push_back(lanes->lanes_.back().get());
    }
    metrics.Lanes(i).Set(options.per_device);
  }
  return lanes;
}

std::optional<int> Lanes::DeviceWith(const Wish& wish, const std::optional<Wish>& but_for) const {
  const auto busy = [](const Device& device) { return device.lanes - static_cast<int>(device.free.size()); };
  std::optional<int> best;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const std::size_t index = (first_device_ + i) % devices_.size();
    const Device& device = devices_[index];
    if (!HasFree(device, wish.kept) || !HasBytes(device, wish)) continue;
    if (!MayRunOn(static_cast<int>(index), wish)) continue;
    if (but_for.has_value() && CouldServe(static_cast<int>(index), *but_for)) continue;
    if (!best.has_value() || busy(device) < busy(devices_[static_cast<std::size_t>(*best)])) {
      best = static_cast<int>(index);
    }
  }
  return best;
}

bool Lanes::HasFree(std::optional<int> only, bool kept) const {
  if (only.has_value()) return HasFree(devices_[static_cast<std::size_t>(*only)], kept);
  return std::any_of(devices_.begin(), devices_.end(),
                     [&](const Device& device) { return HasFree(device, kept); });
}

std::optional<int> Lanes::DeviceFor(const Wish& wish) {
  if (wish.pool_bytes == 0) return DeviceWith(wish, std::nullopt);
  if (first_for_pool_.has_value() && first_for_pool_->job != wish.job) {
    return DeviceWith(wish, first_for_pool_);
  }
  first_for_pool_.reset();
  const std::optional<int> device = DeviceWith(wish, std::nullopt);
  // If the job waits only for a lane or something else, it must not keep other jobs from using the pools.
  bool has_bytes = false;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    has_bytes = has_bytes || (MayRunOn(static_cast<int>(i), wish) && HasBytes(devices_[i], wish));
  }
  if (!has_bytes) first_for_pool_ = wish;
  return device;
}

std::size_t Lanes::LargestPool(std::optional<int> only) const {
  std::size_t largest = 0;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (MayRunOn(static_cast<int>(i), {.only = only})) largest = std::max(largest, devices_[i].pool_bytes);
  }
  return largest;
}

LaneRunner* Lanes::Take(int index, std::size_t pool_bytes, bool kept) {
  Device& device = devices_[static_cast<std::size_t>(index)];
  LaneRunner* const lane = device.free.back();
  device.free.pop_back();
  device.free_bytes -= pool_bytes;
  first_device_ = (first_device_ + 1) % devices_.size();
  ++(kept ? busy_kept_ : device.ordinary);
  ++busy_;
  ShowBusy(device);
  return lane;
}

void Lanes::GiveBack(LaneRunner* lane, std::size_t pool_bytes, bool kept) {
  Device& device = devices_[static_cast<std::size_t>(lane->device())];
  device.free_bytes += pool_bytes;
  device.free.push_back(lane);
  --(kept ? busy_kept_ : device.ordinary);
  --busy_;
  ShowBusy(device);
}

std::vector<LaneRunner*> Lanes::TakeIdle(int count, std::size_t pool_bytes) {
  std::vector<LaneRunner*> taken;
  for (int i = 0; i < static_cast<int>(devices_.size()) && static_cast<int>(taken.size()) < count; ++i) {
    const Device& device = devices_[static_cast<std::size_t>(i)];
    if (!IsIdle(i) || device.lanes - kept_ < 2 || device.free_bytes < pool_bytes) continue;
    if (pool_bytes > 0 && first_for_pool_.has_value() && CouldServe(i, *first_for_pool_)) continue;
    taken.push_back(Take(i, pool_bytes, /*kept=*/false));
  }
  return taken;
}

void Lanes::Forget(std::uint64_t job) {
  if (first_for_pool_.has_value() && first_for_pool_->job == job) first_for_pool_.reset();
}

void Lanes::ShowBusy(Device& device) {
  device.busy.Set(device.lanes - static_cast<double>(device.free.size()));
}

}  // namespace warpline
