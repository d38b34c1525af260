#include "server/rpc/server_arguments.h"

#include <grpc/grpc.h>
#include <grpcpp/resource_quota.h>

#include <cstddef>
#include <limits>

#include "absl/time/time.h"
#include "server/rpc/gentle_close.h"

namespace warpline {
namespace {

// A connection is closed if it does not finish its TLS handshake, or does not start to speak HTTP/2, in this
// time.
constexpr absl::Duration kHandshakeTimeout = absl::Seconds(20);

// After a client was asked to leave a connection, the connection is closed at the latest after this time.
constexpr absl::Duration kConnectionAgeGrace = absl::Hours(1);

// Twenty connections that flood the server with calls took 80 MiB with this (docs/attacks.md).
constexpr int kMostPending = 10'000;

// Clients may ping every ten seconds, as the usual recipes do, while they wait for a result or have no call.
// A ping may come a little early. gRPC disconnects those that ping more often.
constexpr absl::Duration kLeastPingInterval = absl::Seconds(9);

}  // namespace

void SetArguments(const RpcServer::Options& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  builder.SetMaxSendMessageSize(std::numeric_limits<int>::max());
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_streams_per_connection);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(absl::ToInt64Milliseconds(kHandshakeTimeout)));
  // A client that does not even read its socket blocks a write, which cannot be cancelled. The connection's
  // TCP_USER_TIMEOUT closes it and so frees the write's memory. Pings find clients that have gone.
  const int send_timeout_ms = static_cast<int>(absl::ToInt64Milliseconds(options.send_timeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, send_timeout_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, send_timeout_ms);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             static_cast<int>(absl::ToInt64Milliseconds(kLeastPingInterval)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  if (options.max_connection_age > absl::ZeroDuration()) {
    CloseGently();
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS,
                               static_cast<int>(absl::ToInt64Milliseconds(options.max_connection_age)));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
                               static_cast<int>(absl::ToInt64Milliseconds(kConnectionAgeGrace)));
  }
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);  // see inflate.h
  // Newer versions of gRPC give these names. They bound the calls that wait until the server takes them, and
  // end some of anybody's as CANCELLED between the two: with their own 1000 a flood from one address hits
  // others.
  builder.AddChannelArgument("grpc.server.max_pending_requests", kMostPending);
  builder.AddChannelArgument("grpc.server.max_pending_requests_hard_limit", 2 * kMostPending);
  grpc::ResourceQuota quota("warplined");
  quota.Resize(static_cast<std::size_t>(options.memory_quota_bytes));
  builder.SetResourceQuota(quota);
}

}  // namespace warpline
