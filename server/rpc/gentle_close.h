// Connections that gRPC closes end behind the last byte that was sent, and not before it.
#ifndef WARPLINE_SERVER_RPC_GENTLE_CLOSE_H_
#define WARPLINE_SERVER_RPC_GENTLE_CLOSE_H_

namespace warpline {

// gRPC ends a connection by shutdown(2) in both directions, as soon as the kernel has taken its last byte. If
// the client then sends anything, as it does for each part of a large response that it reads, the kernel
// answers with a reset, and what the client has not read is lost. From here on, for the rest of the process,
// sockets are shut down for writing only: the client reads the response, then the end, and closes its side.
// Whoever keeps a duplicate of the descriptor, as Connections does, sees to it that the socket lives so long,
// and ends it if the client does not.
void CloseGently();

// Ends a connection in both directions all the same: a TCP connection by a reset, so that the other end does
// not go on waiting to send what nobody will read.
void CutConnection(int fd);

// Throws away what was received and not read, if the client has reset the TCP connection: gRPC would still
// read all of it, and begin calls that nobody waits for.
void DropUnread(int fd);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_GENTLE_CLOSE_H_
