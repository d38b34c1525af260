// Places the large arrays of one call in the client's pool.
#ifndef WARPLINE_CLIENT_SRC_PLACEMENT_H_
#define WARPLINE_CLIENT_SRC_PLACEMENT_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/region_pool.h"
#include "client/src/result_type.h"
#include "warpline/array.h"

namespace warpline::client {

// Changes the operands and destinations of a request so that they lie in the pool. This is invisible to the
// caller: Deliver moves the results to the caller's destinations. Not thread-safe.
class Placement {
 public:
  // A placement that changes nothing.
  Placement() = default;
  // `operands` and `destinations` belong to the request that is sent, and must outlive this. `types` has an
  // entry for each destination. The pool must live until the last Place or Deliver.
  Placement(RegionPool& pool, std::vector<Operand*> operands, std::span<Destination> destinations,
            std::vector<std::optional<ArrayType>> types);

  // True if the client has a pool, and the call may use it.
  bool active() const { return pool_ != nullptr; }
  // True if the server may write to the caller's memory.
  bool writes_in_place() const { return writes_in_place_; }
  // True if a region in which an array was placed is lost.
  bool lost_region() const;

  // Copies large operands into the pool, and finds places for large results. Call this before each attempt.
  // It keeps what an earlier call placed, unless a region was lost or there was no server then. With kAuto,
  // arrays that do not fit travel in the message. `may_retry`: if the server does not answer, return
  // Unavailable instead of sending the arrays in the message. With kAlways, returns all errors.
  absl::Status Place(absl::Time deadline, bool may_retry);
  // Replaces the decoded results of a successful attempt by the caller's results. Those are in the caller's
  // destination, in the pool, or copied out of the pool.
  absl::Status Deliver(std::span<Array* const> results);

 private:
  struct Copied {
    Operand given;  // the operand as the caller gave it
    Operand sent;
  };
  // A result that is not written to the caller's destination.
  struct Moved {
    std::optional<PoolBlock> block;  // its place in the pool; nothing if it comes in the response
  };

  absl::Status PlaceAll(absl::Time deadline, bool may_retry);
  absl::Status PlaceOperand(Operand& operand, absl::Time deadline, bool may_retry);
  absl::Status PlaceResult(std::size_t i, absl::Time deadline, bool may_retry);
  absl::Status DeliverOne(std::size_t i, Array& result);
  // Returns nothing if the array must travel in the message.
  absl::StatusOr<std::optional<PoolBlock>> Take(std::size_t bytes, absl::Time deadline, bool may_retry);
  // True if the server can read or write these elements where they are, in a region.
  bool IsShared(const void* data, std::size_t bytes, DType dtype) const;
  // True if a result there would overlap no operand and no other result that is written in place. A failed
  // attempt may write the result, and a retry needs the operands unchanged.
  bool IsFree(const void* data, std::size_t bytes) const;
  void GiveBack();

  RegionPool* pool_ = nullptr;
  std::vector<Operand*> operands_;
  std::span<Destination> destinations_;
  std::vector<std::optional<ArrayType>> types_;
  // The operands and destinations as the caller gave them.
  std::vector<Operand> given_operands_;
  std::vector<Destination> given_destinations_;

  bool is_placed_ = false;
  bool is_lacking_ = false;  // an array found no room because the server was unreachable
  bool writes_in_place_ = false;
  std::vector<Copied> copied_;
  std::vector<std::optional<Moved>> moved_;  // by result
  std::vector<std::shared_ptr<SharedRegion>> regions_;
  std::vector<std::span<const std::byte>> in_place_;  // results that are written in place
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_PLACEMENT_H_
