// How the arrays of a command travel between files and the server.
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
  // kShm for large arrays if the server shares memory; else as the library chooses.
  kAuto,
  // In the requests and responses.
  kInline,
  // In shared memory, into which files are read, and from which they are written.
  kShm,
  // In ranges, apart from the request and the response.
  kStream,
};

// The size from which arrays travel in ranges, for ClientOptions::stream_from_bytes.
std::size_t StreamFromBytes(TransportKind kind);

// Adds --transport, for commands that can use all kinds.
void AddTransport(CLI::App& command, TransportKind& into);
// Checks that a command can share memory. A usage error if the server's region socket is not known.
absl::Status CheckSharing(const CommonFlags& common);
// Checks that somebody listens at the path of --regions, if it is given. A path that was asked for is not
// ignored in silence, even if no array is shared. A usage error if the path is wrong.
absl::Status CheckRegions(const CommonFlags& common);

// The transport of one command. The operands pass through it one after another, then the result. Its errors
// are as error.h classifies them. Not thread-safe.
class Transport {
 public:
  // The client must outlive this.
  Transport(Client& client, TransportKind kind, const CommonFlags& common);

  // The most bytes that one operand may have.
  std::size_t max_bytes() const;
  // Returns memory for the elements of an operand if they are to lie in shared memory; null if they are not.
  absl::StatusOr<std::shared_ptr<void>> Allocate(std::size_t bytes);
  // Chooses where results that come back are written, one destination for each type: shared memory, or new
  // memory. A type that is not set is unknown.
  absl::StatusOr<std::vector<Destination>> Place(std::span<const std::optional<ArrayType>> types);

  // Returns how operand `i` of a call has travelled: "inline", "shm" or "stream"; "resident" if it was on the
  // server before.
  std::string_view WayOf(const Operand& operand, std::size_t i, const Streamed& streamed) const;
  // The same for result `i`, for which Place chose this.
  static std::string_view WayOf(const Destination& place, std::size_t i, const Streamed& streamed);

  // Returns, for the codec, the parts of a request that need no room in it. They refer to this object.
  SharedPlaces shared() const;

 private:
  // Returns null if there is to be no region.
  absl::StatusOr<Region*> OpenRegion(std::size_t bytes);
  // True if `data` lies in one of the regions.
  bool IsShared(const void* data) const;

  Client* client_;
  TransportKind kind_;
  bool may_share_;
  const bool must_share_;  // asked for by name: that there is no shared memory is an error
  absl::Duration deadline_;
  std::vector<std::unique_ptr<Region>> regions_;  // destinations point to them
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_TRANSPORT_H_
