// Lets connections that gRPC closes end after the last byte that was sent, not before.
#ifndef WARPLINE_SERVER_RPC_GENTLE_CLOSE_H_
#define WARPLINE_SERVER_RPC_GENTLE_CLOSE_H_

namespace warpline {

// gRPC ends a connection by shutdown(2) in both directions, as soon as the kernel has accepted its last byte.
// If the client then sends anything, as it does for each part of a large response that it reads, the kernel
// answers with a reset, and data that the client has not read yet is lost. After this call, for the rest of
// the process, sockets are shut down for writing only: the client reads the response, then the end, and
// closes its side. Whoever keeps a duplicate of the descriptor, as Connections does, must keep the socket
// open that long, and end it if the client does not.
void CloseGently();

// Ends a connection in both directions. A TCP connection is reset, so that the other side does not keep
// waiting to send data that nobody will read.
void CutConnection(int fd);

// Discards data that was received but not read, if the client has reset the TCP connection. Otherwise gRPC
// would read all of it, and begin calls that nobody waits for.
void DropUnread(int fd);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_GENTLE_CLOSE_H_
