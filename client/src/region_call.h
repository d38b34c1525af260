// The part that regions have in one attempt of one call.
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

// Finds the slices of one request, and pins what they lie in until this is gone. After a call that ended with
// anything but OK, this must stay until Withdraw has called back. Not thread-safe.
class RegionCall {
 public:
  // The regions must outlive this. `lost_is_ordinary`: arrays in lost regions travel in the message, like
  // ordinary arrays. Otherwise they are errors.
  explicit RegionCall(RegionClient& regions, bool lost_is_ordinary = false)
      : regions_(regions), lost_is_ordinary_(lost_is_ordinary) {}
  ~RegionCall() { Release(); }
  RegionCall(const RegionCall&) = delete;
  RegionCall& operator=(const RegionCall&) = delete;

  // True if Place must see a result with this destination. Most clients have no regions. They need not know
  // what the result will be.
  bool MayPlace(const Destination& destination) const {
    return destination.region != nullptr || (destination.data != nullptr && !regions_.table().empty());
  }
  // Places the results that are to lie in regions. `types` has an entry for each output. InvalidArgument for
  // contradictory destinations, and for memory of a region in which no array lies; ResourceExhausted if there
  // is no room; Unavailable if the region is lost.
  absl::Status Place(std::span<const Destination> destinations,
                     std::span<const std::optional<ArrayType>> types);
  // Returns the places for the codec. They refer to this object.
  const SharedPlaces& places();

  // True if the request has slices.
  bool uses_regions() const { return !uses_.empty(); }
  // True if one of the regions of the request is lost.
  bool lost_region() const;
  // Asks all regions for the end of the call. `ended` runs once they have confirmed it, on the thread of the
  // last to do so; at once if there are none.
  void Withdraw(std::function<void()> ended);
  // Gives up the pins, and its share of the results, before this goes.
  void Release();

 private:
  struct Use {
    std::shared_ptr<SharedRegion> region;
    std::size_t block;
  };

  // The slice of memory that lies in a region of the client; nothing if it does not.
  absl::StatusOr<std::optional<v1::RegionSlice>> Slice(const void* data, std::size_t bytes);
  absl::StatusOr<std::optional<SharedResult>> PlaceOne(const Destination& destination,
                                                       const std::optional<ArrayType>& type);

  RegionClient& regions_;
  const bool lost_is_ordinary_;
  std::int64_t number_ = 0;  // once there is a slice
  SharedPlaces places_;
  std::vector<Use> uses_;
};

// Withdraws a call, and waits for the end of that.
void WithdrawAndWait(RegionCall& call);
// Withdraws a call, which lives until that has ended. The future becomes ready then.
std::future<void> BeginWithdrawal(const std::shared_ptr<RegionCall>& call);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_REGION_CALL_H_
