// The options of a client, of its connection and of each call.
#ifndef WARPLINE_OPTIONS_H_
#define WARPLINE_OPTIONS_H_

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "warpline/array.h"

namespace warpline::client {

// The paths of the PEM files for TLS. The files are read when the client is made. Unix sockets need no TLS;
// for such targets these options are ignored.
struct TlsOptions {
  std::string ca{};    // the CAs that may have signed the server's certificate; empty: no TLS
  std::string cert{};  // the client's certificate and its chain, if the server requires one
  std::string key{};   // the private key of the certificate, without a pass phrase
};

struct ChannelOptions {
  // If true, uses a separate connection, even if the process has another channel to the same target.
  bool own_connection = false;
  // If a file is unusable, every call fails with InvalidArgument, which names the file.
  TlsOptions tls{};
  // The token that identifies this client to a server that asks for tokens. It is sent with every call.
  // Without TLS, everybody on the network path can read it. Must be printable ASCII without spaces, else
  // every call fails. Empty: no token.
  std::string token{};
};

// Selects which arrays travel in memory that is shared with a server on the same host, and not in messages.
enum class SharedMemory {
  // Only arrays in regions that the caller opened (region.h).
  kExplicit,
  // Also ordinary arrays of ClientOptions::share_from_bytes and more. They are copied into a pool of regions
  // that the client opens as needed. Results lie in the pool, and are not copied. If the server shares no
  // memory, or there is no room, the elements travel in messages.
  kAuto,
  // Like kAuto, but arrays of share_from_bytes and more never travel in messages. If they cannot be shared,
  // the call fails with the reason, usually ResourceExhausted, Unimplemented, or FailedPrecondition.
  kAlways,
};

struct ClientOptions {
  ChannelOptions channel{};
  // The number of times that a call, or one range of a transfer, is sent again. It is sent again after:
  //   - UNAVAILABLE
  //   - a CANCELLED that no server sent, and the "Stream removed" of gRPC
  //   - RESOURCE_EXHAUSTED or ABORTED with a delay from the server: waits for this delay, which doubles
  //     after each retry, up to 4 s
  //   - a stream that the server's gRPC reset as it lowered its windows (docs/clients.md)
  // There is never a retry beyond the deadline. gRPC itself sends again only what no server saw.
  int max_retries = 0;
  // The path of the server's region socket, as in its --regions option, or "unix:/path". If empty, the socket
  // of a server at "unix:/path" is "/path.regions", and other servers have none. See Client::OpenRegion.
  std::string region_socket{};
  // kAuto and kAlways give the client a pool. Then:
  //   - Asynchronous calls copy large operands before they return, and may wait for the server to open a
  //     region. They use at most half of their timeout for that.
  //   - Results keep a part of the pool as long as they live. When results keep more than a quarter of the
  //     pool, further results are copied out of it.
  //   - Arrays in a lost region (region.h) are ordinary memory.
  //   - A result whose destination overlaps an operand is computed elsewhere, and then copied there.
  //   - A call that failed waits for the server only if the server may still write to the caller's memory.
  SharedMemory shared_memory = SharedMemory::kExplicit;
  // Maximum size of all regions of the pool together. Arrays of Client::Empty come on top of it.
  std::size_t pool_bytes = std::size_t{2} << 30;
  // Ordinary arrays of fewer bytes travel in messages. For them, copying into shared memory costs as much as
  // gRPC's copies: 0.38 ms either way for a transpose of 128 KiB, measured with the Python client.
  std::size_t share_from_bytes = std::size_t{128} << 10;
  // Operands whose total size is at least this travel in ranges over several connections: the largest ones,
  // until the others have fewer bytes in total. Results are handled in the same way. Such arrays need not fit
  // into a message. Smaller arrays also travel in ranges if a waiting call finds that the server accepts only
  // smaller messages. 0: all arrays travel in messages. If the client has a pool of shared memory, calls try
  // that first. Results of a call with `free_after` come in the message. If a result replaces an operand and
  // the call fails while results are fetched, that operand may be changed.
  std::size_t stream_from_bytes = std::size_t{16} << 20;
  // The number of connections for ranges, for Put and for Get, at most 64; 0: chosen by size.
  int channels = 0;
};

struct CallOptions {
  // Sent as x-request-id. If empty, the server makes one.
  std::string request_id{};
  // The destination of the result. Run does not use it: RunArgs has one destination for each output. The
  // memory must stay valid until the call is over.
  Destination destination{};
  // The ids of tensors that the server drops when the call has succeeded: at most 256. Operands of the call
  // may be among them. Handles of these tensors do nothing from then on. Ids of no tensor are ignored. If the
  // call fails, the tensors are still there, unless only its response was lost. The call is made again only
  // if the server has refused it.
  std::vector<std::string> free_after{};
  // If true, the Execution names the implementation of each step. For a program with only one step it always
  // does.
  bool report = false;
  // Called while large arrays of the call travel in ranges, with the bytes transferred so far and the total.
  // The rules of Progress apply. It is not called for other arrays.
  std::function<void(std::size_t bytes, std::size_t total)> progress{};
  // Ends a call of RunAsync early, with CANCELLED.
  std::stop_token stop{};
};

}  // namespace warpline::client

#endif  // WARPLINE_OPTIONS_H_
