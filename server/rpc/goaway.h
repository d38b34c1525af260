// Tells clients to leave, so that none of their calls is lost.
#ifndef WARPLINE_SERVER_RPC_GOAWAY_H_
#define WARPLINE_SERVER_RPC_GOAWAY_H_

#include <grpcpp/server.h>

namespace warpline {

// Asks every client, by HTTP/2's GOAWAY, to make its next calls over another connection. The server goes on
// as before: calls that are on their way are taken and answered. Once a client has seen the request (it
// answers a PING that goes with it), it hears which call was the last one taken, and the connection closes
// when that has ended. A connection whose handshake is in progress is missed; another time does no harm to
// the others.
void SendGoaways(grpc::Server& server);

// Closes every connection. Calls that are open are lost, with UNAVAILABLE. A client that was idle hears, when
// it next looks, which call was the last one taken, so that its library makes a call that it sent since then
// once more by itself.
void CloseConnections(grpc::Server& server);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_GOAWAY_H_
