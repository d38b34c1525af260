// The request that a benchmark sends repeatedly.
#ifndef WARPLINE_CLIENT_BENCH_WORK_H_
#define WARPLINE_CLIENT_BENCH_WORK_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "client/bench/flags.h"
#include "client/src/codec.h"
#include "client/src/message_writer.h"
#include "client/src/raw_channel.h"
#include "warpline/array.h"
#include "warpline/client.h"
#include "warpline/requests.h"

namespace warpline::client {

// The messages are encoded once, so a request costs only references to the slices, not a serialisation. Every
// request sends the same memory, so this object must outlive all calls. If results lie in shared memory, each
// request in flight has its own place and its own message. Thread-safe.
class BenchWork {
 public:
  // Puts the operands where the flags say.
  static absl::StatusOr<BenchWork> Create(const BenchFlags& flags);

  const std::string& method() const { return method_; }
  // Returns a share of the message of this slot, which is from 0 to flags.concurrency - 1.
  OutgoingMessage Message(std::size_t slot) const {
    return {messages_[messages_.size() == 1 ? 0 : slot], nullptr};
  }
  // The bytes of the operands that are not already on the server.
  std::size_t bytes_in() const { return bytes_in_; }

  // Sends the first slot's message once, and checks the response. Returns how much memory Decode needs for a
  // result.
  absl::StatusOr<std::size_t> Verify(RawChannel& channel, absl::Duration deadline) const;

  struct Answer {
    std::size_t bytes = 0;  // of a result that came back
    std::string kept;       // the id of a result that stayed on the server
  };
  // Decodes a result to its destination.
  absl::StatusOr<Answer> Decode(const grpc::ByteBuffer& response, std::size_t slot,
                                const Destination& destination) const;

 private:
  // Fills an operand. Returns the operand to send, which lies elsewhere if the flags say so. The operand for
  // checking stays in args_.
  absl::StatusOr<Operand> AddOperand(const BenchFlags& flags, const char* name, const Shape& shape,
                                     ConstArray& local);
  absl::Status AddMessages(const BenchFlags& flags, RunArgs args);
  absl::Status CheckResult(const Array& result) const;
  absl::Status OpenRegion(const BenchFlags& flags);
  SharedPlaces Places() const;

  bool echo_ = false;
  bool keep_ = false;
  std::variant<TransposeArgs, GemmArgs, ReduceArgs> args_;  // with all operands in local memory
  RunArgs run_;                                             // as it is sent
  std::string method_;
  std::unique_ptr<Client> client_;  // for everything but the measured requests
  std::optional<Region> region_;
  std::vector<Tensor> tensors_;
  std::vector<Array> operands_;
  std::vector<SharedPlaces> places_;  // by slot; empty if nothing is shared
  std::vector<grpc::ByteBuffer> messages_;
  std::size_t bytes_in_ = 0;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_BENCH_WORK_H_
