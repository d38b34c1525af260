// The gRPC server: the only code that knows how calls are received.
//
// Connections come from our own acceptor. Calls of all methods are accepted when their headers arrive, on
// completion queues with one polling thread each. A table of paths says who answers them. No other thread
// polls: gRPC's own health and reflection services have pollers that would take events from ours.
// docs/benchmarks/history.md#2026-11-21-receiving has the cost and gain of each of these decisions.
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
#include "server/base/listener.h"
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
    std::vector<Listener> listen;
    std::vector<Listener> proxy_listen;  // see Acceptor::Options
    // The credentials of TCP connections. Null: neither encryption nor identities. Connections over unix
    // sockets never have credentials: the mode of the socket says who may connect, and nobody can listen in
    // between.
    std::shared_ptr<grpc::ServerCredentials> credentials;
    // Number of polling threads, each with its own completion queue. All except the first sleep unless many
    // calls are in progress.
    int threads = 1;
    // Number of additional polling threads while several large transfers are in progress (see
    // PollingHelpers).
    int helpers = 0;
    // How long a polling thread polls its queue before it sleeps (see PollingThread).
    absl::Duration look = absl::ZeroDuration();
    // The threads for calls that compute, used when several are in progress. Null: the polling threads run
    // these calls. It outlives the server.
    WorkerPool* crew = nullptr;
    // Returns the owner of a call, or UNAUTHENTICATED. Not called for health checks. Null: callers are not
    // identified.
    std::function<absl::StatusOr<OwnerId>(const grpc::ServerContext&)> identify;
    const CallLog* log = nullptr;  // of calls that have ended; null: none. It outlives the server.
    int max_connections = 1000;
    std::int64_t max_message_bytes = 0;
    // The limit of all gRPC buffers together.
    std::int64_t memory_quota_bytes = 0;
    int max_streams_per_connection = 128;
    absl::Duration send_timeout = absl::Seconds(30);
    // When a connection has reached this age, within a tenth, its client is asked by GOAWAY to use another
    // connection for its next calls. Zero: never. Unit: 1 ms.
    absl::Duration max_connection_age = absl::ZeroDuration();
    bool echo = false;
  };
  // The handlers that answer the calls. Each call of a handler leads to exactly one response. The handlers
  // outlive the server.
  struct Handlers {
    std::function<void(UnaryCall&)> transpose, gemm, reduce, run, get_info, echo;
    TensorService* tensors = nullptr;  // null: the service does not exist
    RegionService* regions = nullptr;  // null: the service does not exist
  };

  // UNAVAILABLE if the server cannot listen on an address. The inflater and the metrics outlive the server.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(Options options, Handlers handlers,
                                                          Inflater& inflater, Metrics& metrics);
  ~RpcServer();

  // The addresses in use, with the ports that the system chose.
  const std::vector<std::string>& addresses() const;
  const std::vector<std::string>& proxy_addresses() const;
  // Sets the state of grpc.health.v1, for every service and for the server as a whole ("").
  void SetServing(bool serving);
  // Lets the clients leave without losing a call. Closes the listening sockets, asks each client by GOAWAY to
  // make its next calls over another connection, and ends streams that are not work with UNAVAILABLE. Calls
  // that still arrive are served while clients may not have heard of this, at most a second. After that,
  // calls that are work are refused with UNAVAILABLE when their headers arrive. Calls with earlier headers
  // continue, including uploads in progress. In the last second, or the last tenth of the time, connections
  // with open calls are cut, for example those whose results nobody reads. Returns true when gRPC has
  // released all calls, or false at the deadline.
  bool Drain(absl::Time deadline);
  // Ends the server. Open calls may end until the deadline; then they and all connections are cut, with
  // UNAVAILABLE. If a call still exists shortly after that (its job is running, or its client does not
  // acknowledge data), this returns false. Then the object stays as it is, and the process can only exit.
  // Call once.
  bool Shutdown(absl::Time deadline);

 private:
  struct Impl;
  explicit RpcServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_RPC_SERVER_H_
