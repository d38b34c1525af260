// Large arrays of one call, which travel in ranges over several connections. Operands are put on the server
// before the request, which then only names them. Results stay on the server until they have been fetched.
#ifndef WARPLINE_CLIENT_SRC_STREAMING_H_
#define WARPLINE_CLIENT_SRC_STREAMING_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/src/tensor_client.h"
#include "warpline/array.h"
#include "warpline/tensor.h"

namespace warpline::client {

// The largest of `bytes` that must be taken out until the others have fewer than `limit` together. In order
// of their places.
std::vector<std::size_t> LargestOf(const std::vector<std::size_t>& bytes, std::size_t limit);

// Not thread-safe.
class Streaming {
 public:
  // The client must outlive this. Calls of a transfer have the request id of the whole call.
  Streaming(TensorClient& tensors, absl::Time deadline, std::string request_id)
      : tensors_(tensors), deadline_(deadline), request_id_(std::move(request_id)) {}

  // The lease of tensors that exist for one call. The client renews it meanwhile.
  static constexpr absl::Duration kLease = absl::Minutes(1);

  // Puts these operands, which then are names of tensors, on one device: this one, if it is given. Operands
  // that are the same array are put once.
  absl::Status Send(std::span<Operand* const> operands, std::optional<int> device);
  // Drops what was put, and waits for the server: the next call may need the room.
  void DropSent();
  // The tensor of the result comes to where the caller wants it; the handle is gone then.
  absl::Status Fetch(const Destination& wanted, Array& array, std::optional<Tensor>& tensor);

 private:
  absl::Duration left() const;
  void Drop(Tensor& tensor);

  TensorClient& tensors_;
  const absl::Time deadline_;
  const std::string request_id_;
  std::vector<Tensor> sent_;  // until the call is over
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_STREAMING_H_
