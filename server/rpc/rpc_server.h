// The gRPC server: the one place that knows how calls are received.
//
// Connections come from our own acceptor. Calls of every method are accepted at their headers, on completion
// queues with one polling thread each, and answered as a table of paths says. No other thread polls: gRPC's
// own health and reflection services would bring pollers that take events from ours.
// docs/benchmarks/history.md#2026-11-21-receiving has what each of these decisions costs and gains.
#ifndef WARPLINE_SERVER_RPC_RPC_SERVER_H_
#define WARPLINE_SERVER_RPC_RPC_SERVER_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_context.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/owner.h"
#include "server/base/worker_pool.h"
#include "server/observe/metrics.h"
#include "server/rpc/inflater.h"

namespace warpline {

class RegionService;
class TensorService;
class UnaryCall;
struct CallLog;

class RpcServer {
 public:
  struct Options {
    std::vector<std::string> listen;        // host:port (port 0: a free one) or unix:/path
    std::vector<std::string> proxy_listen;  // likewise, for proxies; see Acceptor::Options
    // The credentials of connections over TCP. Null stands for neither encryption nor identities. Connections
    // over unix sockets never have credentials. The mode of the socket says who may connect, and nobody
    // listens in between.
    std::shared_ptr<grpc::ServerCredentials> credentials;
    // Each with a completion queue of its own; all but the first sleep unless many calls are in progress.
    int threads = 1;
    // Threads that poll too while several large transfers are in progress (see PollingHelpers).
    int helpers = 0;
    // How long a polling thread looks at its queue before it sleeps (see PollingThread).
    absl::Duration look = absl::ZeroDuration();
    // The threads for calls that compute, when several are in progress. Null: the polling threads run them.
    // It outlives the server.
    WorkerPool* crew = nullptr;
    // Returns the owner of a call, or UNAUTHENTICATED. It is not called for health checks. Null: nobody is
    // asked who they are.
    std::function<absl::StatusOr<OwnerId>(const grpc::ServerContext&)> identify;
    const CallLog* log = nullptr;  // of calls that have ended; null: none. It outlives the server.
    int max_connections = 1000;
    std::int64_t max_message_bytes = 0;
    // The limit of all of gRPC's buffers together.
    std::int64_t memory_quota_bytes = 0;
    int max_streams_per_connection = 128;
    absl::Duration send_timeout = absl::Seconds(30);
    // A client is asked by GOAWAY to make its next calls over another connection when this one has become so
    // old, give or take a tenth. Zero: never. Unit: 1 ms.
    absl::Duration max_connection_age = absl::ZeroDuration();
    bool echo = false;
  };
  // The handlers that answer the calls. Each handler's call leads to exactly one response. The handlers
  // outlive the server.
  struct Handlers {
    std::function<void(UnaryCall&)> transpose, gemm, reduce, run, get_info, echo;
    TensorService* tensors = nullptr;  // null: there is no such service
    RegionService* regions = nullptr;  // likewise
  };

  // UNAVAILABLE if an address cannot be listened on, INVALID_ARGUMENT if there can be no such address. The
  // inflater and the metrics outlive the server.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(const Options& options, Handlers handlers,
                                                          Inflater& inflater, Metrics& metrics);
  ~RpcServer();

  // The addresses in use, with the ports that were picked.
  const std::vector<std::string>& addresses() const;
  const std::vector<std::string>& proxy_addresses() const;
  // Sets the state of grpc.health.v1, for every service and for the server as a whole ("").
  void SetServing(bool serving);
  // Has the clients leave without losing a call. Closes the listening sockets, asks each client by GOAWAY to
  // make its next calls over another connection, and ends streams that are not work with UNAVAILABLE. Calls
  // that come nevertheless are served for as long as clients may not have heard, a second at most, and then,
  // if they are for work, refused with UNAVAILABLE at their headers. Calls whose headers came before, uploads
  // in progress among them, go on. In the last second, or tenth of the time, connections are cut whose calls
  // are still open, as those whose results nobody reads. Returns true when gRPC has let go of every call, or
  // false at the deadline.
  bool Drain(absl::Time deadline);
  // Ends the server: open calls may end until the deadline, then they and all connections are cut off, with
  // UNAVAILABLE. If a call is still there soon after (its job runs on, or its client does not acknowledge),
  // this returns false, and the process can only exit (the object is then left as it is). Once.
  bool Shutdown(absl::Time deadline);

 private:
  struct Impl;
  explicit RpcServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_RPC_SERVER_H_
