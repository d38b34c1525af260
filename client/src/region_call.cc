#include "client/src/region_call.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/condition_variable.h"
#include "client/src/shared_region.h"
#include "kernels/status_macros.h"
#include "warpline/region.h"

namespace warpline::client {

void RegionCall::Release() {
  for (const Use& use : uses_) use.region->Unpin(use.block);
  uses_.clear();
  places_.results.clear();
}

absl::Status RegionCall::Place(std::span<const Destination> destinations,
                               std::span<const std::optional<ArrayType>> types) {
  std::vector<std::optional<SharedResult>> results;
  bool any = false;
  for (std::size_t i = 0; i < destinations.size() && i < types.size(); ++i) {
    ASSIGN_OR_RETURN(std::optional<SharedResult> result, PlaceOne(destinations[i], types[i]));
    any = any || result.has_value();
    results.push_back(std::move(result));
  }
  if (any) places_.results = std::move(results);
  return absl::OkStatus();
}

const SharedPlaces& RegionCall::places() {
  if (places_.find == nullptr) {
    places_.find = [this](const void* data, std::size_t bytes) { return Slice(data, bytes); };
  }
  return places_;
}

absl::StatusOr<std::optional<v1::RegionSlice>> RegionCall::Slice(const void* data, std::size_t bytes) {
  std::shared_ptr<SharedRegion> region = regions_.table().Find(data, bytes);
  if (region == nullptr) return std::nullopt;
  const absl::StatusOr<std::optional<std::size_t>> pinned = region->Pin(data, bytes);
  if (!pinned.ok() && lost_is_ordinary_) return std::nullopt;
  if (!pinned.ok()) return pinned.status();
  const std::optional<std::size_t> block = *pinned;
  if (!block) {
    return absl::InvalidArgumentError(
        absl::StrCat(bytes, " bytes of a region that lie in none of its arrays, or across their ends"));
  }
  if (number_ == 0) number_ = regions_.NextCall();
  v1::RegionSlice slice;
  slice.set_id(region->id());
  slice.set_offset(static_cast<const std::byte*>(data) - region->data());
  slice.set_call(number_);
  uses_.push_back({std::move(region), *block});
  return slice;
}

absl::StatusOr<std::optional<SharedResult>> RegionCall::PlaceOne(const Destination& destination,
                                                                 const std::optional<ArrayType>& type) {
  if (destination.region != nullptr) {
    if (destination.data != nullptr || destination.keep) {
      return absl::InvalidArgumentError("the destination names both a region and another place");
    }
    if (!destination.region->shared()->IsIn(regions_.table())) {
      return absl::InvalidArgumentError("the destination is a region of another client");
    }
  }
  // Without elements nothing would be written. With an unknown number of elements, the server might write
  // past the end.
  if (!type || type->bytes == 0) return std::nullopt;
  SharedResult result;
  if (destination.region != nullptr) {
    ASSIGN_OR_RETURN(result.array, destination.region->Allocate(type->dtype, type->shape));
  } else if (destination.data != nullptr && !destination.keep) {
    if (regions_.table().Find(destination.data, 0) == nullptr) return std::nullopt;
    // Check the size before the request is sent, because the server does not know where the destination ends.
    ASSIGN_OR_RETURN(result.array, Array::For(type->dtype, type->shape, type->bytes, destination));
  } else {
    return std::nullopt;
  }
  absl::StatusOr<std::optional<v1::RegionSlice>> slice = Slice(result.array.data(), type->bytes);
  if (!slice.ok())
    return absl::Status(slice.status().code(), absl::StrCat("the destination: ", slice.status().message()));
  if (!*slice) return std::nullopt;
  result.slice = **std::move(slice);
  return result;
}

bool RegionCall::lost_region() const {
  return std::any_of(uses_.begin(), uses_.end(), [](const Use& use) { return !use.region->status().ok(); });
}

void RegionCall::Withdraw(std::function<void()> ended) {
  // The regions are held by shared pointers: this object may be destroyed when the last region calls back,
  // possibly before the loop ends.
  std::vector<std::shared_ptr<SharedRegion>> regions;
  for (const Use& use : uses_) regions.push_back(use.region);
  std::sort(regions.begin(), regions.end());
  regions.erase(std::unique(regions.begin(), regions.end()), regions.end());
  if (regions.empty()) return ended();
  const std::int64_t number = number_;
  const auto left = std::make_shared<std::atomic<std::size_t>>(regions.size());
  const auto all_ended = std::make_shared<std::function<void()>>(std::move(ended));
  for (const std::shared_ptr<SharedRegion>& region : regions) {
    region->Withdraw(number, [left, all_ended] {
      if (left->fetch_sub(1, std::memory_order_acq_rel) == 1) (*all_ended)();
    });
  }
}

void WithdrawAndWait(RegionCall& call) {
  std::mutex mutex;
  ConditionVariable changed;
  bool ended = false;
  call.Withdraw([&] {
    // Notify under the lock: the waiting thread destroys these variables as soon as it can continue.
    const std::lock_guard lock(mutex);
    ended = true;
    changed.notify_one();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return ended; });
}

std::future<void> BeginWithdrawal(const std::shared_ptr<RegionCall>& call) {
  // The promise is shared with the callback, which may run after the caller has stopped waiting.
  const auto ended = std::make_shared<std::promise<void>>();
  std::future<void> future = ended->get_future();
  call->Withdraw([call, ended] { ended->set_value(); });
  return future;
}

}  // namespace warpline::client
