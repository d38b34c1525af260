// Who a request belongs to.
#ifndef WARPLINE_SERVER_SCHEDULE_OWNER_H_
#define WARPLINE_SERVER_SCHEDULE_OWNER_H_

#include <cstdint>

namespace warpline {

// An identity, or a connection of clients that have none. No connection has the number of an identity.
using OwnerId = std::uint64_t;

// Who has no identity. What outlives a connection belongs to it, so that where there are no identities every
// client may use every resident tensor whose id it knows.
inline constexpr OwnerId kAnonymous = 0;

// Whose a call is.
struct Caller {
  // Who has the resident tensors and regions: an identity, or kAnonymous.
  OwnerId owner = kAnonymous;
  // Between whom budgets and device time are shared fairly: identities, and connections without one.
  OwnerId share = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_OWNER_H_
