// Asks clients to leave, so that none of their calls is lost.
#ifndef WARPLINE_SERVER_RPC_GOAWAY_H_
#define WARPLINE_SERVER_RPC_GOAWAY_H_

#include <grpcpp/server.h>

namespace warpline {

// Asks every client, by HTTP/2's GOAWAY, to make its next calls over another connection. The server continues
// as before: calls that are on their way are accepted and answered. After the client has seen the request (it
// answers a PING that is sent with it), it is told which call was the last accepted one, and the connection
// closes when that call has ended. Connections in the middle of their handshake are not asked, so call this
// again: doing so does no harm to the others.
void SendGoaways(grpc::Server& server);

// Closes every connection. Open calls are lost, with UNAVAILABLE. An idle client is told which call was the
// last accepted one, so its library repeats a call that it sent after that.
void CloseConnections(grpc::Server& server);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_GOAWAY_H_
