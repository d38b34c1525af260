// The one request that a benchmark sends again and again.
#ifndef WARPLINE_CLIENT_BENCH_WORK_H_
#define WARPLINE_CLIENT_BENCH_WORK_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/bench/flags.h"
#include "client/src/message_writer.h"
#include "client/src/raw_channel.h"
#include "warpline/array.h"
#include "warpline/requests.h"

namespace warpline::client {

// Encoded once: a request then costs references to its slices, not a serialisation. Every request sends the
// same memory, so it must outlive all calls. Thread-safe.
class BenchWork {
 public:
  static absl::StatusOr<BenchWork> Create(const BenchFlags& flags);

  const std::string& method() const { return method_; }
  // A share of the one message.
  OutgoingMessage Message() const { return {message_, nullptr}; }
  std::size_t bytes_in() const { return bytes_in_; }

  // Sends it once and checks what comes back. Returns the bytes of the result.
  absl::StatusOr<std::size_t> Verify(RawChannel& channel, absl::Duration deadline) const;
  // Brings a result to its place, and returns its bytes.
  absl::StatusOr<std::size_t> Decode(const grpc::ByteBuffer& response, const Destination& destination) const;

 private:
  absl::StatusOr<ConstArray> AddOperand(DType dtype, const Shape& shape, bool distinct);

  bool echo_ = false;
  OperationArgs args_;
  std::string method_;
  grpc::ByteBuffer message_;
  std::vector<Array> operands_;
  std::size_t bytes_in_ = 0;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_BENCH_WORK_H_
