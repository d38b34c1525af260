// The owner that a request belongs to.
#ifndef WARPLINE_SERVER_BASE_OWNER_H_
#define WARPLINE_SERVER_BASE_OWNER_H_

#include <cstdint>
#include <utility>

namespace warpline {

// The number of an identity, or of a peer if clients have no identity. All numbers are different.
using OwnerId = std::uint64_t;

// The number of a client among the clients of a peer.
using ClientId = std::uint64_t;

// The owner of callers without an identity. It owns everything of theirs that outlives a connection. So if
// there are no identities, every client may use every resident tensor whose id it knows.
inline constexpr OwnerId kAnonymous = 0;

// A budget is shared fairly between claimants: between the shares first, and then between the clients of a
// share.
struct Claimant {
  // The identity; without one, the peer: the host or user at the other end (server/rpc/peer.h).
  OwnerId share = 0;
  // 0 for an identity, whose clients are not told apart. For a peer, the name that the client gives itself
  // (the header x-warpline-affinity), or its connection.
  ClientId client = 0;

  friend bool operator==(const Claimant&, const Claimant&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Claimant& claimant) {
    return H::combine(std::move(h), claimant.share, claimant.client);
  }
};

// The owner of a call, and the claimant to which the call is charged.
struct Caller {
  // The owner of the call's resident tensors and regions: an identity, or kAnonymous.
  OwnerId owner = kAnonymous;
  Claimant claimant;
  // The client itself, even if it has an identity. Its tensors are placed together on one device.
  Claimant client;
};
inline Caller CallerWith(OwnerId identity, ClientId client = 0) {
  return {
      .owner = identity, .claimant = {.share = identity}, .client = {.share = identity, .client = client}};
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_OWNER_H_
