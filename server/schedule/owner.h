// Who a request belongs to.
#ifndef WARPLINE_SERVER_SCHEDULE_OWNER_H_
#define WARPLINE_SERVER_SCHEDULE_OWNER_H_

#include <cstdint>

namespace warpline {

// Budgets and device time are shared fairly between owners. Until there are identities the owner of a request
// is the connection it came over. 0 is the owner of what belongs to nobody in particular.
using OwnerId = std::uint64_t;

// Who has no identity. What outlives a connection belongs to it, so that until there are identities every
// client may use every resident tensor whose id it knows.
inline constexpr OwnerId kAnonymous = 0;

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_OWNER_H_
