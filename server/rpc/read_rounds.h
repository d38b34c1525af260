// Limits how much gRPC reads of a connection at a time.
#ifndef WARPLINE_SERVER_RPC_READ_ROUNDS_H_
#define WARPLINE_SERVER_RPC_READ_ROUNDS_H_

#include <cstddef>
#include <cstdint>

namespace warpline {

// gRPC 1.51 reads a connection in rounds: until the kernel says that there is nothing more. After a round it
// makes the next buffer as large as all that the round has read. If a client sends as fast as we read, the
// round never ends, and one buffer may grow to gigabytes. Beyond 2 GiB gRPC aborts the process, because the
// size overflows an int. Frames without flow control, such as PRIORITY, make this easy.
//
// After BoundReadRounds, for the rest of the process, a round of a TCP connection ends with the read that
// reaches this many bytes: gRPC is told that there is nothing more. gRPC uses an edge-triggered epoll, so the
// kernel is made to report a new edge, and gRPC continues to read. So a read buffer has at most some 25 MiB.
// Clients of unix sockets are trusted.
constexpr std::size_t kMaxBytesOfRound = std::size_t{8} << 20;
void BoundReadRounds();

// Returns the bytes that the process has received through this descriptor, and through earlier ones with the
// same number, since BoundReadRounds. Only differences are meaningful. 0 for a negative descriptor.
std::uint64_t BytesReceived(int fd);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_READ_ROUNDS_H_
