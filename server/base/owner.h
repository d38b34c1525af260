// The owner that a request belongs to.
#ifndef WARPLINE_SERVER_BASE_OWNER_H_
#define WARPLINE_SERVER_BASE_OWNER_H_

#include <cstdint>
#include <utility>

namespace warpline {

// The number of an identity, or of a peer where clients have no identity. No two have the same one.
using OwnerId = std::uint64_t;

// The number of one client among those of a peer.
using ClientId = std::uint64_t;

// The owner of callers without an identity. Everything of theirs that outlives a connection belongs to it. So
// where there are no identities, every client may use every resident tensor whose id it knows.
inline constexpr OwnerId kAnonymous = 0;

// A budget is shared fairly between claimants: between the shares first, and then between the clients of a
// share.
struct Claimant {
  // The identity. Without one it is the peer: the host or the user at the other end (server/rpc/peer.h).
  OwnerId share = 0;
  // 0 for an identity, whose clients share nothing between them. Of a peer it is what the client calls itself
  // (the header x-warpline-affinity), or the connection.
  ClientId client = 0;

  friend bool operator==(const Claimant&, const Claimant&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Claimant& claimant) {
    return H::combine(std::move(h), claimant.share, claimant.client);
  }
};

// The owner of a call, and the claimant that it counts for.
struct Caller {
  // The owner of the call's resident tensors and regions: an identity, or kAnonymous.
  OwnerId owner = kAnonymous;
  Claimant claimant;
  // The client itself, also among those of an identity. Its tensors lie together on one device.
  Claimant client;
};
inline Caller CallerWith(OwnerId identity, ClientId client = 0) {
  return {
      .owner = identity, .claimant = {.share = identity}, .client = {.share = identity, .client = client}};
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_OWNER_H_
