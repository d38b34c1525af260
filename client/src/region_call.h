// The regions that one attempt of one call uses.
#ifndef WARPLINE_CLIENT_SRC_REGION_CALL_H_
#define WARPLINE_CLIENT_SRC_REGION_CALL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/src/codec.h"
#include "client/src/region_client.h"
#include "client/src/result_type.h"
#include "warpline/array.h"

namespace warpline::client {

// Finds the slices of one request, and pins their blocks until this is destroyed. After a call that did not
// end with OK, this must live until Withdraw has called back. Not thread-safe.
class RegionCall {
 public:
  // The regions must outlive this. `lost_is_ordinary`: arrays in lost regions travel in the message, like
  // ordinary arrays. Otherwise they are errors.
  explicit RegionCall(RegionClient& regions, bool lost_is_ordinary = false)
      : regions_(regions), lost_is_ordinary_(lost_is_ordinary) {}
  ~RegionCall() { Release(); }
  RegionCall(const RegionCall&) = delete;
  RegionCall& operator=(const RegionCall&) = delete;

  // True if Place must handle a result with this destination. Most clients have no regions, so they need not
  // know the type of the result.
  bool MayPlace(const Destination& destination) const {
    return destination.region != nullptr || (destination.data != nullptr && !regions_.table().empty());
  }
  // Reserves memory for the results that must lie in regions. `types` has an entry for each output. Returns
  // InvalidArgument if a destination is contradictory, belongs to another client, or lies in a region but not
  // within one of its arrays; ResourceExhausted if a region has no room; Unavailable if a region is lost.
  absl::Status Place(std::span<const Destination> destinations,
                     std::span<const std::optional<ArrayType>> types);
  // Returns the places for the codec. They refer to this object.
  const SharedPlaces& places();

  // True if the request contains slices.
  bool uses_regions() const { return !uses_.empty(); }
  // True if one of the request's regions is lost.
  bool lost_region() const;
  // Asks all regions to end the call. `ended` runs once all have confirmed, on the thread of the last one. It
  // runs at once if the call uses no regions.
  void Withdraw(std::function<void()> ended);
  // Releases the pins, and this object's share of the results, before destruction.
  void Release();

 private:
  struct Use {
    std::shared_ptr<SharedRegion> region;
    std::size_t block;
  };

  // Returns the slice of memory that lies in a region of the client; nothing for other memory.
  absl::StatusOr<std::optional<v1::RegionSlice>> Slice(const void* data, std::size_t bytes);
  absl::StatusOr<std::optional<SharedResult>> PlaceOne(const Destination& destination,
                                                       const std::optional<ArrayType>& type);

  RegionClient& regions_;
  const bool lost_is_ordinary_;
  std::int64_t number_ = 0;  // set once there is a slice
  SharedPlaces places_;
  std::vector<Use> uses_;
};

// Withdraws a call, and waits until that is confirmed.
void WithdrawAndWait(RegionCall& call);
// Withdraws a call, and keeps it alive until that is confirmed. The future becomes ready then.
std::future<void> BeginWithdrawal(const std::shared_ptr<RegionCall>& call);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_REGION_CALL_H_
