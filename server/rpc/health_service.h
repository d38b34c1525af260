// grpc.health.v1, on the server's own completion queues.
//
// gRPC's default health service uses the callback API, which has its own polling threads. They take events
// from our threads: a raw echo takes 61-83 us with them and 48-56 us without.
#ifndef WARPLINE_SERVER_RPC_HEALTH_SERVICE_H_
#define WARPLINE_SERVER_RPC_HEALTH_SERVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "server/base/mutex.h"
#include "server/rpc/message_stream.h"

namespace warpline {

class UnaryCall;

// The health of each service, and of the server as a whole under the name "". All have the same state. Other
// names are unknown services. Thread-safe. It outlives the calls.
class HealthService {
 public:
  static constexpr char kName[] = "grpc.health.v1.Health";

  // The initial state is not serving.
  explicit HealthService(const std::vector<std::string>& services);

  // Sets the state. If this changes it, all watchers are told.
  void SetServing(bool serving);

  // NOT_FOUND for an unknown service.
  void Check(UnaryCall& call);
  void List(UnaryCall& call);
  // Watch: sends the state now and after each change, until the client or the server ends the stream. For an
  // unknown service it sends SERVICE_UNKNOWN and stays open, because that never changes.
  std::unique_ptr<MessageStream::Handler> NewWatch();

 private:
  class Watch;
  // The response of Check and Watch.
  std::string Response(bool known) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddWatcher(MessageStream& stream, const std::string& service);
  void RemoveWatcher(MessageStream& stream);

  const absl::flat_hash_set<std::string> services_;
  Mutex mutex_;
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<MessageStream*> watchers_ ABSL_GUARDED_BY(mutex_);  // only those of known services
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_HEALTH_SERVICE_H_
