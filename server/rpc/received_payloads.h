// The payloads of a request, in gRPC's slices.
#ifndef WARPLINE_SERVER_RPC_RECEIVED_PAYLOADS_H_
#define WARPLINE_SERVER_RPC_RECEIVED_PAYLOADS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "proto/wire/slices.h"
#include "server/memory/copy_payload.h"
#include "server/plan/plan.h"
#include "server/rpc/message_slices.h"

namespace warpline {

// Owns the slices until it is destroyed. Immutable, so several threads may copy parts of it at once.
class ReceivedPayloads {
 public:
  // `ranges` are the payloads that the scan found in the slices.
  ReceivedPayloads(MessageSlices slices, const std::vector<PayloadRange>& ranges, const Plan& plan);

  // Copies part `part` of `parts` parts of about equal size to where the plan places the inputs in `region`.
  void CopyPart(std::span<std::byte> region, int part, int parts, CopySite& site) const;

 private:
  struct Payload {
    PayloadRange range;
    std::size_t offset = 0;  // in the region
  };
  MessageSlices slices_;
  std::vector<Payload> payloads_;
  std::size_t bytes_ = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_RECEIVED_PAYLOADS_H_
