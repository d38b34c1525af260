// Transfers the arrays of a command between files and the server.
#ifndef WARPLINE_CLIENT_CLI_TRANSPORT_H_
#define WARPLINE_CLIENT_CLI_TRANSPORT_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/flags.h"
#include "client/src/codec.h"
#include "client/src/result_type.h"
#include "warpline/client.h"

namespace warpline::client {

enum class TransportKind {
  // kShm for large arrays if the server shares memory, otherwise as the library chooses.
  kAuto,
  // The arrays travel in the requests and responses.
  kInline,
  // The arrays lie in shared memory. Files are read into it, and written from it.
  kShm,
  // The arrays travel in ranges, apart from the request and the response.
  kStream,
};

// Returns the size from which arrays travel in ranges, for ClientOptions::stream_from_bytes.
std::size_t StreamFromBytes(TransportKind kind);

// Adds --transport, for commands that can use all kinds.
void AddTransport(CLI::App& command, TransportKind& into);
// Checks that a command can share memory. A usage error if the server's region socket is unknown.
absl::Status CheckSharing(const CommonFlags& common);
// If --regions is given, checks that a server listens at its path. A path that the user gave is never ignored
// silently, even if no array is shared. A usage error if the path is wrong.
absl::Status CheckRegions(const CommonFlags& common);

// The transport of one command. It handles the operands one after another, then the result. Its errors have
// the kinds of error.h. Not thread-safe.
class Transport {
 public:
  // The client must outlive this.
  Transport(Client& client, TransportKind kind, const CommonFlags& common);

  // Returns the maximum number of bytes of one operand.
  std::size_t max_bytes() const;
  // Returns memory for the elements of an operand if they are to lie in shared memory; null if they are not.
  absl::StatusOr<std::shared_ptr<void>> Allocate(std::size_t bytes);
  // Chooses where results that come back are written, one destination for each type: shared memory, or new
  // memory. A type that is not set is unknown.
  absl::StatusOr<std::vector<Destination>> Place(std::span<const std::optional<ArrayType>> types);

  // Returns how operand `i` of a call travelled: "inline", "shm" or "stream"; "resident" if it already was on
  // the server.
  std::string_view WayOf(const Operand& operand, std::size_t i, const Streamed& streamed) const;
  // Same for result `i`; `place` is the destination that Place chose for it.
  static std::string_view WayOf(const Destination& place, std::size_t i, const Streamed& streamed);

  // Returns, for the codec, the parts of a request that lie in shared memory. They refer to this object.
  SharedPlaces shared() const;

 private:
  // Returns null if no region must be used.
  absl::StatusOr<Region*> OpenRegion(std::size_t bytes);
  // True if `data` lies in one of the regions.
  bool IsShared(const void* data) const;

  Client* client_;
  TransportKind kind_;
  bool may_share_;
  const bool must_share_;  // the user asked for shared memory: it is an error if there is none
  absl::Duration deadline_;
  std::vector<std::unique_ptr<Region>> regions_;  // destinations point to them
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_TRANSPORT_H_
