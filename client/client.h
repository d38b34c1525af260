// The client of a warpline server: typed calls on arrays in the caller's memory.
//
//   warpline::client::Client client("127.0.0.1:50051", {});
//   auto result = client.Transpose({.x = {DType::kF32, {3, 4}, 0, data}}, absl::Seconds(5));
//   auto chain = client.Run({.program = *ParseExpression("reduce(gemm(a, b), op=sum)"),  // expression.h
//                            .inputs = {{"a", a}, {"b", b}}}, absl::Seconds(5));
#ifndef WARPLINE_CLIENT_CLIENT_H_
#define WARPLINE_CLIENT_CLIENT_H_

#include <functional>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/array.h"
#include "client/codec.h"
#include "client/raw_channel.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

struct ClientOptions {
  ChannelOptions channel{};
  // How often a blocking call is sent again after UNAVAILABLE, or after RESOURCE_EXHAUSTED with a delay from
  // the server, which is obeyed. Never beyond the deadline. gRPC itself only sends again what no server saw.
  int max_retries = 0;
};

struct CallOptions {
  // Sent as x-request-id; empty: the server makes one.
  std::string request_id{};
  // Of the resulting elements, but for Run, whose arguments have one an output. Must stay until the call is
  // over.
  Destination destination{};
};

using OperationArgs = std::variant<TransposeArgs, GemmArgs, ReduceArgs>;

// The path of the method that carries out these arguments, or of the others, for RawChannel.
const std::string& MethodOf(const OperationArgs& args);
const std::string& EchoMethod();

// Calls the methods of the API, which warpline.proto describes. Every call has a deadline: `timeout` from
// now, finite and above zero. Errors have gRPC's codes; error.h reads their details. Operands stay the
// caller's and must not change until the call is over (see ConstArray). Thread-safe.
class Client {
 public:
  Client(const std::string& target, const ClientOptions& options);

  absl::StatusOr<Result> Transpose(const TransposeArgs& args, absl::Duration timeout,
                                   const CallOptions& options = {});
  absl::StatusOr<Result> Gemm(const GemmArgs& args, absl::Duration timeout, const CallOptions& options = {});
  absl::StatusOr<Result> Reduce(const ReduceArgs& args, absl::Duration timeout,
                                const CallOptions& options = {});
  absl::StatusOr<RunResult> Run(const RunArgs& args, absl::Duration timeout, const CallOptions& options = {});
  absl::StatusOr<v1::GetInfoResponse> GetInfo(absl::Duration timeout);
  // grpc.health.v1 Check of one service, or of the whole server (""): whether it is SERVING.
  absl::StatusOr<bool> IsServing(const std::string& service, absl::Duration timeout);

  // Any of the operations, without waiting and without retries. `done` runs on a thread of the client's, or
  // at once on the caller's if the request cannot be sent.
  void CallAsync(const OperationArgs& args, absl::Duration timeout, const CallOptions& options,
                 std::function<void(absl::StatusOr<Result>)> done);
  void RunAsync(const RunArgs& args, absl::Duration timeout, const CallOptions& options,
                std::function<void(absl::StatusOr<RunResult>)> done);

 private:
  template <typename EncodeRequest>
  absl::StatusOr<grpc::ByteBuffer> Call(const std::string& method, const EncodeRequest& encode,
                                        absl::Duration timeout, const CallOptions& options);
  template <typename Decode, typename Done>
  void CallAsync(const std::string& method, absl::StatusOr<OutgoingMessage> message, absl::Duration timeout,
                 const CallOptions& options, Decode decode, Done done);
  template <typename Args>
  absl::StatusOr<Result> Compute(const Args& args, absl::Duration timeout, const CallOptions& options);

  int max_retries_;
  RawChannel channel_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLIENT_H_
