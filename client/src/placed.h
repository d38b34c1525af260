// The arguments of one call as they are sent: the caller's, except for arrays that lie in the client's pool.
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
  // `pool` may be null. `types`: the types of the results. `keeps`: copy the arguments, because they may be
  // destroyed while args() is still needed.
  Placed(RegionPool* pool, const RunArgs& args, ResultTypes types, bool keeps);
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;

  const RunArgs& args() const { return *args_; }
  const ResultTypes& types() const { return types_; }
  Placement& placement() { return placement_; }
  // Releases the arguments and what was placed for them, when the call is over.
  void Release();

 private:
  // False for most small calls, so that a pool adds almost no cost to them.
  bool MayUse(const RegionPool& pool, const RunArgs& args) const;

  const RunArgs* args_;
  const ResultTypes types_;
  std::optional<RunArgs> own_;
  Placement placement_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_PLACED_H_
