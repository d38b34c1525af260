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
  // kShm for large arrays where the server shares memory; kStream for what is too large for a request.
  kAuto,
  // In the requests and responses.
  kInline,
  // In shared memory, into which files are read, and from which they are written.
  kShm,
  // Operands are put on the server first, and results are fetched from it.
  kStream,
};

// --transport, where all of them are to be had.
void AddTransport(CLI::App& command, TransportKind& into);
// Of a command that is to share memory. A usage error if no region socket is known of the server.
absl::Status CheckSharing(const CommonFlags& common);
// Whether somebody listens where --regions says, if it is given: what is asked for by its path is not left
// out in silence, even if nothing comes to be shared. A usage error if the path is wrong.
absl::Status CheckRegions(const CommonFlags& common);

// Of one command, whose operands pass through it one after another, then its result. Errors are as error.h
// tells them apart. Not thread-safe.
class Transport {
 public:
  // The client must outlive this.
  Transport(Client& client, TransportKind kind, const CommonFlags& common);

  // The most bytes that one operand may have.
  std::size_t max_bytes() const;
  // Memory for the elements of an operand, if they are to lie in shared memory; null if they are not.
  absl::StatusOr<std::shared_ptr<void>> Allocate(std::size_t bytes);
  // Puts operands on the server that are too large for the request, and names them there.
  absl::Status SendAhead(std::span<Operand* const> operands);
  // Where results of these types go that are to come back: in the response, into shared memory, or to the
  // server, from where Fetch brings them. One for each type; nothing is known of those that are not there.
  absl::StatusOr<std::vector<Destination>> Place(std::span<const std::optional<ArrayType>> types);
  // A result as it is to be written, which may have stayed on the server because Place said so.
  absl::Status Fetch(Array& array, std::optional<Tensor>& tensor);
  // The same result as an operand of the next request.
  Operand Reuse(const Array& array, std::optional<Tensor> tensor);

  // How an operand comes to the server, and how a result that Place has put somewhere comes back: "inline",
  // "shm" or "stream"; "resident" for an operand that was on the server before.
  std::string_view WayOf(const Operand& operand) const;
  static std::string_view WayOf(const Destination& place);
  // An error of a request. Where it is about tensors that stay on the server, of which the caller knows
  // nothing, it says why there are any.
  absl::Status Explained(const absl::Status& status) const;

  // For the codec: what of a request needs no room in it. It refers to this.
  SharedPlaces shared() const;

 private:
  // Whether so many bytes of operands, or of results, are not to travel in a message.
  absl::StatusOr<bool> Streams(std::size_t bytes);
  // Null if there is to be none.
  absl::StatusOr<Region*> OpenRegion(std::size_t bytes);
  // Whether it lies in one of the regions.
  bool IsShared(const void* data) const;

  Client* client_;
  TransportKind kind_;
  bool may_share_;
  const bool must_share_;  // asked for by name: that there is no shared memory is an error
  absl::Duration deadline_;
  std::optional<std::size_t> limit_;              // of the server, once it was asked
  std::size_t too_large_ = 0;                     // bytes that auto streams, as a message cannot have them
  std::vector<std::unique_ptr<Region>> regions_;  // destinations point to them
  std::vector<Tensor> tensors_;                   // operands on the server
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_TRANSPORT_H_
