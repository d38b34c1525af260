// gRPC reads no more of a connection at a time than is good for the process.
#ifndef WARPLINE_SERVER_RPC_READ_ROUNDS_H_
#define WARPLINE_SERVER_RPC_READ_ROUNDS_H_

#include <cstddef>
#include <cstdint>

namespace warpline {

// gRPC 1.51 reads a connection in rounds: until the kernel says that nothing more is there. After a round it
// makes its buffer for the next one as large as all that was read in it. A client that sends as fast as we
// read never lets a round end, so that one buffer may become gigabytes; beyond 2 GiB gRPC ends the process,
// as its size overflows an int. What makes it so easy are frames without flow control, such as PRIORITY.
//
// From here on, for the rest of the process, a round of a TCP connection ends with the read that reaches so
// many bytes: gRPC is told that nothing more is there, and that something has come. It does not lose sight of
// the connection, which it has in an edge-triggered epoll: the kernel is made to report an edge. So a buffer
// for reading has some 25 MiB at most. Clients of unix sockets are trusted.
constexpr std::size_t kMaxBytesOfRound = std::size_t{8} << 20;
void BoundReadRounds();

// Bytes that the process has received through this descriptor and earlier ones of the same number, since
// BoundReadRounds. Only differences mean something. 0 for a negative descriptor.
std::uint64_t BytesReceived(int fd);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_READ_ROUNDS_H_
