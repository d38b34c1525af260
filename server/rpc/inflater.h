// Decompresses messages on other threads than those that receive calls.
#ifndef WARPLINE_SERVER_RPC_INFLATER_H_
#define WARPLINE_SERVER_RPC_INFLATER_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/owner.h"
#include "server/rpc/message_slices.h"
#include "server/schedule/admission.h"
#include "server/schedule/fair_workers.h"

namespace warpline {

// Inflating even a small message can keep a thread busy for a second, because the content may be a thousand
// times larger. So threads that receive calls never inflate one. A message is admitted for the largest size
// that its content can have, and a worker inflates it: at most as many at a time as there are workers.
// Thread-safe. All calls of Start must have ended, with `done`, before this is destroyed.
class Inflater {
 public:
  struct Inflated {
    MessageSlices slices;
    // Pays for the slices until the request itself is admitted.
    Ticket ticket;
  };
  using Done = absl::AnyInvocable<void(absl::StatusOr<Inflated>)>;

  // Both arguments outlive this.
  Inflater(Admission& admission, FairWorkers& workers) : admission_(admission), workers_(workers) {}

  // Calls `done` with the content of a gzip or zlib stream (errors: see inflate.h), on the thread that polls
  // `queue`, whose tags must be CompletionTags. The content may have at most `limit` bytes, and no more than
  // its owner may have admitted. If admission refuses it, Start returns the refusal and never calls `done`.
  absl::Status Start(MessageSlices compressed, std::size_t limit, const Caller& caller,
                     grpc::CompletionQueue& queue, Done done);

 private:
  Admission& admission_;
  FairWorkers& workers_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_INFLATER_H_
