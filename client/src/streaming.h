// The large arrays of one call. They travel in ranges over several connections, apart from the call's
// messages.
#ifndef WARPLINE_CLIENT_SRC_STREAMING_H_
#define WARPLINE_CLIENT_SRC_STREAMING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/src/connection.h"
#include "client/src/tensor_client.h"
#include "warpline/array.h"
#include "warpline/tensor.h"

namespace warpline::client {

// Returns the indices of the largest `bytes` to take out until the rest have fewer than `limit` in total, in
// ascending order. Takes out at most `most`.
std::vector<std::size_t> LargestOf(const std::vector<std::size_t>& bytes, std::size_t limit,
                                   std::size_t most = SIZE_MAX);

// The maximum number of uploads of one request.
inline constexpr std::size_t kMaxUploads = 64;

// The options that all calls of a streamed call share.
struct StreamingOptions {
  absl::Time deadline;
  std::string request_id{};
  int channels = 0;  // as ClientOptions::channels
  std::function<void(std::size_t bytes, std::size_t total)> progress{};
  std::size_t result_bytes = 0;  // of the results that travel in ranges
};

// Not thread-safe.
class Streaming {
 public:
  // The connection and the client must outlive this.
  Streaming(Connection& connection, TensorClient& tensors, StreamingOptions options)
      : connection_(connection), tensors_(tensors), options_(std::move(options)) {}

  // Makes these operands uploads of the request. Operands that are the same array share one upload.
  void SetUploads(std::span<Operand* const> operands);
  // Sends the uploads, once the server has accepted the request. `uploads` is the server's message Uploads.
  absl::Status Send(const std::string& uploads, const std::stop_token& ended);
  // Fetches a result from its tensor to where the caller wants it. The handle is released then.
  absl::Status Fetch(const Destination& wanted, Array& array, std::optional<Tensor>& tensor);

 private:
  absl::Duration left() const;
  // The number of channels for this many bytes.
  absl::StatusOr<int> ChannelsOf(std::size_t bytes) const;
  // Returns the progress function for one transfer. It reports the progress of all transfers together.
  Progress ProgressOf();

  Connection& connection_;
  TensorClient& tensors_;
  const StreamingOptions options_;
  std::vector<ConstArray> arrays_;  // by upload number
  int channels_ = 1;                // the number that the server allows
  std::size_t total_ = 0;           // bytes of all arrays that travel in ranges
  std::size_t moved_ = 0;           // by transfers that have ended
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_STREAMING_H_
