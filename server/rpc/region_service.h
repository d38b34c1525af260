// RegionService: tickets for shared regions.
#ifndef WARPLINE_SERVER_RPC_REGION_SERVICE_H_
#define WARPLINE_SERVER_RPC_REGION_SERVICE_H_

#include "server/store/region_store.h"

namespace warpline {

class UnaryCall;

// Thread-safe. Its arguments outlive it, and it outlives the calls.
class RegionService {
 public:
  // `has_socket`: there is a socket to which a ticket can be presented.
  RegionService(RegionStore& regions, bool has_socket) : regions_(regions), has_socket_(has_socket) {}

  void Open(UnaryCall& call);

 private:
  RegionStore& regions_;
  const bool has_socket_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_REGION_SERVICE_H_
