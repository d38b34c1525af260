// The gRPC server: the one place that knows how calls are received.
//
// Model: the asynchronous API with raw (ByteBuffer) methods, one completion queue a thread. Measured on 16
// cores beside the callback API, raw echo of 4 KiB (docs/benchmarks/2026-11-21-h200-one-request.md): 89,000
// requests/s against 82,000 with 64 in flight. A lone request takes 57 us, 38 there.
#ifndef WARPLINE_SERVER_RPC_RPC_SERVER_H_
#define WARPLINE_SERVER_RPC_RPC_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/observe/metrics.h"

namespace warpline {

class UnaryCall;

class RpcServer {
 public:
  struct Options {
    std::vector<std::string> listen;  // host:port (port 0: a free one) or unix:/path
    int threads = 1;                  // each with a completion queue of its own
    std::int64_t max_message_bytes = 0;
    // Of all of gRPC's buffers together.
    std::int64_t memory_quota_bytes = 0;
    int max_streams_per_connection = 0;
    absl::Duration send_timeout = absl::Seconds(30);
    bool echo = false;
  };
  // What answers the calls; each leads to exactly one response. Outlives the server.
  struct Handlers {
    std::function<void(UnaryCall&)> transpose, gemm, reduce, run, get_info, echo;
  };

  // UNAVAILABLE if an address cannot be listened on.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(const Options& options, Handlers handlers,
                                                          Metrics& metrics);
  ~RpcServer();

  // The addresses in use, with the ports that were picked.
  const std::vector<std::string>& addresses() const;
  // Of grpc.health.v1, for every service and for the server as a whole ("").
  void SetServing(bool serving);
  // Waits until gRPC has sent every response and let go of every call, but for those received after this was
  // called; false if that did not happen by the deadline.
  bool AwaitCallsEnded(absl::Time deadline);
  // Ends the server: open calls may end until the deadline, then they are cancelled. If one is still there
  // soon after (its job runs on, or its client does not acknowledge), this returns false, and the process
  // can only exit (the object is then left as it is). Once.
  bool Shutdown(absl::Time deadline);

 private:
  struct Impl;
  explicit RpcServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_RPC_SERVER_H_
