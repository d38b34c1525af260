// The arguments of one call as they are sent: those of the caller, but for what lies in the client's pool.
#ifndef WARPLINE_CLIENT_SRC_PLACED_H_
#define WARPLINE_CLIENT_SRC_PLACED_H_

#include <optional>

#include "client/src/placement.h"
#include "client/src/region_pool.h"
#include "client/src/result_type.h"
#include "warpline/requests.h"

namespace warpline::client {

class Placed {
 public:
  // `pool` may be null. `types` are those of the results. `keeps`: the arguments may go while args() is still
  // needed.
  Placed(RegionPool* pool, const RunArgs& args, ResultTypes types, bool keeps);
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;

  const RunArgs& args() const { return *args_; }
  const ResultTypes& types() const { return types_; }
  Placement& placement() { return placement_; }
  // Gives up the arguments and what was placed for them: the call is over.
  void Release();

 private:
  // False for most small calls, which then cost hardly more than without a pool.
  bool MayUse(const RegionPool& pool, const RunArgs& args) const;

  const RunArgs* args_;
  const ResultTypes types_;
  std::optional<RunArgs> own_;
  Placement placement_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_PLACED_H_
