// Decompression beside the threads that receive calls.
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

// A message of a thousandth of its size may keep a thread busy for a second, so threads that receive calls
// never inflate one. A message is admitted for what it can become at most, and inflated by a worker: at most
// as many at a time as there are workers. Thread-safe. Every call of Start has ended, with `done`, before
// this is destroyed.
class Inflater {
 public:
  struct Inflated {
    MessageSlices slices;
    // Pays for the slices until they are admitted as what they are.
    Ticket ticket;
  };
  using Done = absl::AnyInvocable<void(absl::StatusOr<Inflated>)>;

  // Both outlive this.
  Inflater(Admission& admission, FairWorkers& workers) : admission_(admission), workers_(workers) {}

  // Calls `done` on the thread that polls `queue`, whose tags are CompletionTags, with the content of a gzip
  // or zlib stream (see inflate.h for the errors) of at most `limit` bytes, and of no more than its owner may
  // have admitted. If admission refuses it, this returns the refusal and never calls `done`.
  absl::Status Start(MessageSlices compressed, std::size_t limit, const Caller& caller,
                     grpc::CompletionQueue& queue, Done done);

 private:
  Admission& admission_;
  FairWorkers& workers_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_INFLATER_H_
